# The flags that all targets share, and one function for each kind of target.

add_library(fa_options INTERFACE)
target_include_directories(fa_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(fa_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall>
    $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
    $<$<COMPILE_LANGUAGE:CXX>:-Wconversion>
    $<$<COMPILE_LANGUAGE:CXX>:-Wshadow>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
    # The conversions of common/half.h and the masks of common/attention.h are constexpr functions, and
    # kernels call them.
    $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>
    # Before version 13, g++ warns of its own AVX-512 intrinsics (GCC bug 105593) wherever Eigen is
    # compiled for them; with sanitizers, in other words.
    "$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-maybe-uninitialized;-Wno-uninitialized>"
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${FA_NATIVE}>>:-march=native>)
# Eigen chooses its alignment by the vector unit it compiles for. One fixed value keeps object files
# compiled with and without -march=native compatible: memory from one may be freed by the other.
target_compile_definitions(fa_options INTERFACE
    EIGEN_MAX_ALIGN_BYTES=64
    # Threads are ours, over (batch, head, Q block); Eigen inside them must not open its own.
    EIGEN_DONT_PARALLELIZE
    $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
target_link_libraries(fa_options INTERFACE OpenMP::OpenMP_CXX)
if(FA_SANITIZE)
    # A finding ends the program, so that no test passes over one.
    set(sanitize -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_compile_options(fa_options INTERFACE ${sanitize})
    target_link_options(fa_options INTERFACE ${sanitize})
    target_compile_definitions(fa_options INTERFACE FA_SANITIZED)
endif()

# Third-party headers are not ours to warn about.
foreach(target Eigen3::Eigen Boost::context fmt::fmt nlohmann_json::nlohmann_json CLI11::CLI11)
    get_target_property(aliased ${target} ALIASED_TARGET)
    if(aliased)
        set(target ${aliased})
    endif()
    get_target_property(includes ${target} INTERFACE_INCLUDE_DIRECTORIES)
    if(includes)
        set_property(TARGET ${target} APPEND PROPERTY INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${includes}")
    endif()
endforeach()

# fa_prints(TARGET...): what prints, writes files and compares. Sanitizers see it as well when it is not optimised, which
# takes half the time to compile; what computes is optimised.
function(fa_prints)
    if(FA_SANITIZE)
        foreach(target IN LISTS ARGN)
            target_compile_options(${target} PRIVATE -O0)
        endforeach()
    endif()
endfunction()

# fa_library(NAME SOURCES...): a static library with the course's flags.
function(fa_library name)
    add_library(${name} STATIC ${ARGN})
    target_link_libraries(${name} PUBLIC fa_options)
endfunction()

# fa_program(NAME SOURCES...): a program in build/bin with the course's flags.
function(fa_program name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE fa_options fa_program)
    fa_prints(${name})  # what computes lies in libraries
    # What scripts/run.sh builds: most of a whole build is tests.
    if(NOT TARGET programs)
        add_custom_target(programs)
    endif()
    add_dependencies(programs ${name})
    # Every program is run by the tests with its defaults and with wrong flags (tests/programs_test.py).
    set_property(GLOBAL APPEND PROPERTY FA_PROGRAMS ${name})
endfunction()

# fa_exercise(NAME LIBS...): exercises/NAME.h, which readers fill in, and exercises/NAME_solution.h, each with the
# check exercises/NAME_check.cpp, as exercise_02_NAME and solution_02_NAME. Built when asked for, by
# scripts/exercise.sh, or run by `ctest -C Exercise -L exercise` once built: an exercise fails until it is solved, and
# a plain run of the tests should not. fault_02_NAME is the check with a header that tests/exercises/prove.py writes.
function(fa_exercise name)
    get_filename_component(chapter ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    string(SUBSTRING ${chapter} 0 2 number)
    set(exercise_header "chapters/${chapter}/exercises/${name}.h")
    set(solution_header "chapters/${chapter}/exercises/${name}_solution.h")
    set(fault_header "${PROJECT_BINARY_DIR}/exercises/faults/${number}_${name}.h")
    foreach(kind exercise solution fault)
        set(target ${kind}_${number}_${name})
        add_executable(${target} EXCLUDE_FROM_ALL exercises/${name}_check.cpp)
        target_compile_definitions(${target} PRIVATE FA_EXERCISE="${${kind}_header}")
        target_link_libraries(${target} PRIVATE fa_options fa_common fmt::fmt ${ARGN})
        set_target_properties(${target} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/exercises)
        if(NOT TARGET ${kind}s)
            add_custom_target(${kind}s)
        endif()
        add_dependencies(${kind}s ${target})
    endforeach()
    # Many of them are built, and each runs once. A fault may leave unused what the solution used.
    target_compile_options(fault_${number}_${name} PRIVATE -O0 -w)
    add_test(NAME exercise_${number}_${name} CONFIGURATIONS Exercise
             COMMAND ${PROJECT_BINARY_DIR}/exercises/exercise_${number}_${name})
    set_tests_properties(exercise_${number}_${name} PROPERTIES LABELS exercise TIMEOUT 60)
endfunction()
