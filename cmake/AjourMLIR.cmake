# LLVM, MLIR and LLD 22, TableGen, and the precompiled header of everything that includes MLIR.

list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(MLIR 22.1 REQUIRED CONFIG)
find_package(LLD REQUIRED CONFIG)
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(AJOUR_LLVM_BIN "${LLVM_TOOLS_BINARY_DIR}")

# The precompiled header lives in a target of its own that the MLIR rooms reuse.
add_library(AjourPCH STATIC "${PROJECT_SOURCE_DIR}/cmake/pch.cpp")
target_link_libraries(AjourPCH PRIVATE MLIR LLVM)
target_precompile_headers(AjourPCH PRIVATE "${PROJECT_SOURCE_DIR}/cmake/pch.h")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(AjourPCH PUBLIC "SHELL:-Xclang -fno-pch-timestamp")
endif()
