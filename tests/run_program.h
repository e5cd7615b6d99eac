#pragma once
/// @file
/// Runs a program the way a shell would, for tests of exit status and messages.

#include <string>
#include <vector>

/// What came of a run.
struct ProgramRun {
    int exit_status = -1;  ///< as returned by main or exit(); -1 if a signal ended the program
    int signal = 0;        ///< the signal that ended it, 0 if none
    std::string out, err;  ///< what it wrote to stdout and stderr
};

/// Runs `arguments[0]` with the rest as arguments, no shell in between, stdin empty, and waits.
/// @param seconds after which SIGALRM ends the program
/// @throws std::runtime_error if it cannot be started
ProgramRun run_program(const std::vector<std::string>& arguments, unsigned seconds = 60);
