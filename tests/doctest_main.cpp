/// @file
/// main() of the test executables. CTest runs one case per process.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
