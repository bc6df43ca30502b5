/// What a model keeps between runs: checks of its description, and the memory of a session for it.
#ifndef AJOUR_LIB_RUNTIME_STATE_H
#define AJOUR_LIB_RUNTIME_STATE_H

#include "Session.h"

namespace ajour::runtime {

/// Bytes of a state's elements; the description has been checked.
uint64_t stateBytes(const artifact::State &state);
/// Bytes that a session takes for all states.
uint64_t stateMemory(const ajour_model &model);

/// Takes memory for the states and fills it with their initial values.
ajour_status_code initStates(ajour_session &session);
void resetStates(ajour_session &session);
/// Writes where each state lies into session.pointers.
void connectStates(ajour_session &session);
/// After a run: what it wrote is what the next one reads.
void advanceStates(ajour_session &session);
/// Fails with STATE when a run that did not end has left states behind that nobody knows.
ajour_status_code checkStates(const ajour_session &session);
/// Remembers a run that began to change states in place and did not end.
void breakStates(ajour_session &session);

/// Bytes of a saved state, its header included.
uint64_t savedStateBytes(const ajour_model &model);
void saveStates(const ajour_session &session, uint8_t *to);
ajour_status_code restoreStates(ajour_session &session, const uint8_t *from, uint64_t size);

} // namespace ajour::runtime

#endif
