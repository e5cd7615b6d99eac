#include "tests/run_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A nameless file: unlike a pipe it never fills up, so that nobody has to read while the program
/// runs.
File temporary_file() {
    File file(std::tmpfile(), std::fclose);
    if (!file) throw std::system_error(errno, std::generic_category(), "tmpfile");
    return file;
}

std::string content(std::FILE* file) {
    std::string text;
    std::rewind(file);
    for (int c; (c = std::fgetc(file)) != EOF;) text.push_back(static_cast<char>(c));
    return text;
}

constexpr int NOT_STARTED = 127;  // what shells return too

}  // namespace

ProgramRun run_program(const std::vector<std::string>& arguments, unsigned seconds) {
    const File out = temporary_file(), err = temporary_file();
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);

    const pid_t child = fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child == 0) {
        dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
        dup2(fileno(out.get()), STDOUT_FILENO);
        dup2(fileno(err.get()), STDERR_FILENO);
        alarm(seconds);
        execvp(argv[0], argv.data());
        _exit(NOT_STARTED);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");

    ProgramRun run;
    if (WIFEXITED(status)) run.exit_status = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) run.signal = WTERMSIG(status);
    run.out = content(out.get());
    run.err = content(err.get());
    if (run.exit_status == NOT_STARTED) throw std::runtime_error("cannot start " + arguments.at(0));
    return run;
}
