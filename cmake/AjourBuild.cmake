# Settings that every target shares, and the functions that declare targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(ENV_SLOPPINESS "pch_defines,time_macros,include_file_mtime,include_file_ctime")
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=${ENV_SLOPPINESS} ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
if(AJOUR_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=address,undefined)
endif()
if(AJOUR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
# lld links the compiler about ten times faster than ld.
if(AJOUR_COMPILER AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()

include_directories("${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")

# Adds those of the given folders that are part of this checkout's build.
macro(ajour_add_rooms)
  foreach(room ${ARGN})
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${room}/CMakeLists.txt")
      add_subdirectory(${room})
    endif()
  endforeach()
endmacro()

# Libraries that the runtime is made of may not use exceptions or RTTI.
function(ajour_runtime_options target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
endfunction()

# ajour_add_library(NAME SOURCES ... [LINK ...] [DEPENDS ...]): one room of lib/, as a static library.
function(ajour_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# ajour_add_mlir_library(...): the same for a room that includes MLIR; shares one precompiled header.
function(ajour_add_mlir_library name)
  ajour_add_library(${name} ${ARGN})
  target_link_libraries(${name} PUBLIC MLIR LLVM)
  target_precompile_headers(${name} REUSE_FROM AjourPCH)
endfunction()

# ajour_add_test(NAME [MLIR] [PREFIX ...] SOURCES ... LINK ...): a GoogleTest program whose cases CTest lists one by one.
function(ajour_add_test name)
  cmake_parse_arguments(ARG "MLIR" "PREFIX" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} ajour_gtest)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  if(ARG_MLIR)
    target_link_libraries(${name} PRIVATE MLIR LLVM)
    target_precompile_headers(${name} REUSE_FROM AjourPCH)
    # The precompiled header is a library's (-fPIC); a program would be compiled with -fPIE.
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${name} PRIVATE -fPIC)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin/tests")
  gtest_discover_tests(${name} TEST_PREFIX "${ARG_PREFIX}" DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 600)
endfunction()
