# Writes build_info.h: which compiler, flags and commit a program was built from. Runs at every build
# (cmake -P), not only at configure time, and touches the file only if something changed.
#   -D OUTPUT=… SOURCE_DIR=… COMPILER=… BUILD_TYPE=… FLAGS=…
set(commit "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
    # Of this repository itself, not of one that it was unpacked inside.
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE_DIR} rev-parse --show-prefix
                    OUTPUT_VARIABLE prefix ERROR_QUIET RESULT_VARIABLE failed
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed AND prefix STREQUAL "")
        execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE_DIR} describe --always --dirty --abbrev=12
                        OUTPUT_VARIABLE described ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(described)
            set(commit "${described}")
        endif()
    endif()
endif()
if(commit STREQUAL "unknown" AND DEFINED ENV{FA_COMMIT})
    set(commit "$ENV{FA_COMMIT}")  # a tree without its history, whose commit the builder knows
endif()
string(STRIP "${FLAGS}" FLAGS)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[#pragma once
// Written by scripts/cmake/BuildInfo.cmake.
#define BUILD_COMPILER "@COMPILER@"
#define BUILD_TYPE "@BUILD_TYPE@"
#define BUILD_FLAGS "@FLAGS@"
#define BUILD_COMMIT "@commit@"
]])
