# Every library the course uses. A package of the system is taken if there is one (Debian and Ubuntu
# have them all, see scripts/packages.txt); otherwise the pinned version is fetched and built. Pinned are
# the versions of Debian 12, so that both ways build the same; scripts/check_fetched_build.py tries it.
include(FetchContent)
set(FETCHCONTENT_QUIET OFF)

# Only the libraries themselves are wanted. Subprojects older than CMake's policy CMP0077 would not take
# these from plain variables, and CMake 4 not build projects that ask for less than 3.5.
set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
set(EIGEN_BUILD_DOC OFF)
set(EIGEN_BUILD_PKGCONFIG OFF)
set(DOCTEST_WITH_TESTS OFF)
set(DOCTEST_WITH_MAIN_IN_STATIC_LIB OFF)
set(JSON_BuildTests OFF)
set(BENCHMARK_ENABLE_TESTING OFF)
set(BENCHMARK_ENABLE_INSTALL OFF)

FetchContent_Declare(Eigen3
    GIT_REPOSITORY https://gitlab.com/libeigen/eigen.git
    GIT_TAG 3.4.0
    GIT_SHALLOW TRUE
    FIND_PACKAGE_ARGS 3.4 NO_MODULE)
FetchContent_Declare(fmt
    GIT_REPOSITORY https://github.com/fmtlib/fmt.git
    GIT_TAG 9.1.0
    GIT_SHALLOW TRUE
    FIND_PACKAGE_ARGS 9.1)
FetchContent_Declare(nlohmann_json
    GIT_REPOSITORY https://github.com/nlohmann/json.git
    GIT_TAG v3.11.2
    GIT_SHALLOW TRUE
    FIND_PACKAGE_ARGS 3.11)
FetchContent_Declare(CLI11
    GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git
    GIT_TAG v2.1.2
    GIT_SHALLOW TRUE
    FIND_PACKAGE_ARGS 2.1)
# Unicode's character classes, for GPT-2's tokenizer.
FetchContent_Declare(utf8proc
    GIT_REPOSITORY https://github.com/JuliaStrings/utf8proc.git
    GIT_TAG v2.8.0
    GIT_SHALLOW TRUE
    FIND_PACKAGE_ARGS MODULE)
FetchContent_MakeAvailable(Eigen3 fmt nlohmann_json CLI11 utf8proc)
if(NOT TARGET utf8proc::utf8proc)
    add_library(utf8proc::utf8proc ALIAS utf8proc)
endif()
# Fibers, for the CPU executor of CUDA kernels.
set(BOOST_INCLUDE_LIBRARIES context)
FetchContent_Declare(Boost
    URL https://github.com/boostorg/boost/releases/download/boost-1.84.0/boost-1.84.0.tar.xz
    FIND_PACKAGE_ARGS 1.74 COMPONENTS context)
FetchContent_MakeAvailable(Boost)
# Chapter 6.
FetchContent_Declare(benchmark
    GIT_REPOSITORY https://github.com/google/benchmark.git
    GIT_TAG v1.7.1
    GIT_SHALLOW TRUE
    FIND_PACKAGE_ARGS 1.7)
FetchContent_MakeAvailable(benchmark)
find_package(OpenMP REQUIRED COMPONENTS CXX)

if(FA_TESTS)
    FetchContent_Declare(doctest
        GIT_REPOSITORY https://github.com/doctest/doctest.git
        GIT_TAG v2.4.9
        GIT_SHALLOW TRUE
        FIND_PACKAGE_ARGS 2.4.9)
    FetchContent_MakeAvailable(doctest)
    # doctest_discover_tests() stands beside doctest's package file, or in its source tree.
    if(doctest_SOURCE_DIR)
        list(APPEND CMAKE_MODULE_PATH ${doctest_SOURCE_DIR}/scripts/cmake)
    else()
        list(APPEND CMAKE_MODULE_PATH ${doctest_DIR})
    endif()
endif()
