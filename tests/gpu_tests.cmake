# Tests that need a GPU, beside the suite: label "gpu". Under compute-sanitizer: label "sanitizer". Without
# a GPU they say "skipped: no CUDA device" and count as skipped.
add_library(fa_gpu_kernels STATIC gpu_kernels.cu)
target_link_libraries(fa_gpu_kernels PUBLIC fa_options fa_cuda)
fa_test(test_gpu gpu_graph_test.cpp gpu_launch_test.cpp gpu_memory_test.cpp
    LIBS fa_implementations fa_gpu_kernels
    LABELS gpu)

# Launches that overlap, which only chapter 9's do.
if(TARGET fa_ch09_cuda)
    add_library(fa_gpu_late_copy STATIC gpu_late_copy.cu)
    target_link_libraries(fa_gpu_late_copy PUBLIC fa_options fa_cuda)
    set_target_properties(fa_gpu_late_copy PROPERTIES CUDA_ARCHITECTURES 90a-real)
    fa_test(test_gpu_overlap gpu_overlap_test.cpp
        LIBS fa_implementations fa_ch09_experiments_cuda fa_gpu_late_copy
        LABELS gpu)
endif()

# A program whose kernel is built for another GPU than the one that is here.
set(other_architecture 75)
if(CMAKE_CUDA_ARCHITECTURES MATCHES "75")
    set(other_architecture 80)
endif()
add_executable(gpu_wrong_architecture gpu_wrong_architecture.cpp gpu_kernels.cu)
target_link_libraries(gpu_wrong_architecture PRIVATE fa_options fa_cuda)
target_compile_definitions(gpu_wrong_architecture PRIVATE FA_OTHER_ARCHITECTURE=${other_architecture})
set_target_properties(gpu_wrong_architecture PROPERTIES
    CUDA_ARCHITECTURES ${other_architecture}-real
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
add_test(NAME gpu_wrong_architecture COMMAND gpu_wrong_architecture)
set_tests_properties(gpu_wrong_architecture PROPERTIES
    LABELS gpu TIMEOUT ${FA_TEST_TIMEOUT}
    PASS_REGULAR_EXPRESSION "no kernel image|invalid device function"
    SKIP_REGULAR_EXPRESSION "skipped: ")

# All implementations on a few problems: by itself, and watched by each tool of compute-sanitizer. Only
# our own kernels are watched, not those of cuBLAS.
add_executable(gpu_sanitized gpu_sanitized.cpp)
target_link_libraries(gpu_sanitized PRIVATE fa_options fa_implementations)
set_target_properties(gpu_sanitized PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/bin)
add_test(NAME gpu_sanitized COMMAND gpu_sanitized)
set_tests_properties(gpu_sanitized PROPERTIES
    LABELS gpu TIMEOUT ${FA_TEST_TIMEOUT} SKIP_REGULAR_EXPRESSION "skipped: ")

find_program(COMPUTE_SANITIZER compute-sanitizer
    HINTS ${CUDAToolkit_BIN_DIR} ${CUDAToolkit_BIN_DIR}/../compute-sanitizer)
mark_as_advanced(COMPUTE_SANITIZER)
set(filter --kernel-regex)
if(COMPUTE_SANITIZER)
    execute_process(COMMAND ${COMPUTE_SANITIZER} --help OUTPUT_VARIABLE help ERROR_QUIET)
    if(help MATCHES "--kernel-name ")  # its name in newer versions
        set(filter --kernel-name)
    endif()
endif()
foreach(tool memcheck racecheck synccheck initcheck)
    # Between our kernels of the naive way run those of cuBLAS. Initcheck is not shown what they write, and
    # racecheck (2025.3) ends with an internal error in some of them. What TMA stores initcheck (2025.3) does
    # not see either: it takes O for uninitialised.
    set(without "")
    if(tool STREQUAL racecheck)
        set(without cuda_naive)
    elseif(tool STREQUAL initcheck)
        set(without cuda_naive cuda_persistent cuda_hopper)
    endif()
    if(COMPUTE_SANITIZER)
        add_test(NAME sanitizer:${tool}
            COMMAND ${COMPUTE_SANITIZER} --tool ${tool} --error-exitcode 9 ${filter} kns=_ZN2fa
                $<TARGET_FILE:gpu_sanitized> ${without})
    else()
        add_test(NAME sanitizer:${tool}
            COMMAND ${CMAKE_COMMAND} -E echo "skipped: no compute-sanitizer was found at configure time")
    endif()
    set_tests_properties(sanitizer:${tool} PROPERTIES
        LABELS sanitizer TIMEOUT 900 SKIP_REGULAR_EXPRESSION "skipped: ")
endforeach()
