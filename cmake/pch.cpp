// Gives the precompiled header a target; see AjourMLIR.cmake.
