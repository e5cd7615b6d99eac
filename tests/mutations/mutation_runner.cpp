/// @file
/// Runs the suite on a mutant: mutation_runner MODULE --expect caught|clean [--all] [--json FILE].
///
/// A mutant is a shared module that holds one mutated source file. The suite, its gold and its
/// yardstick are this program's own and healthy. Each check runs in a process of its own, since a
/// mutant may crash or hang: that counts as caught too, and says so.

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/results.h"
#include "tests/attention_suite.h"

namespace fa::suite {
namespace {

constexpr unsigned SECONDS_PER_CHECK = 240;

/// What a check found.
struct Verdict {
    std::string_view check;
    bool caught = false;
    std::string how;  ///< the first failure, or the signal that ended the process
};

const Implementation& load(const std::string& module) {
    void* const handle = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(dlerror());
    using Entry = const Implementation* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(handle, "fa_mutant"));
    if (entry == nullptr) throw std::runtime_error(dlerror());
    return *entry();
}

/// The child's part: runs the check and writes the first failure to `out`. Never returns.
[[noreturn]] void run_in_child(const SuiteCheck& check, const std::string& module, int out) {
    alarm(SECONDS_PER_CHECK);
    const Failures failures = run_check(check, load(module));
    if (!failures.empty()) {
        const std::string& text = failures.front();
        if (write(out, text.data(), text.size()) < 0) _exit(3);
    }
    _exit(failures.empty() ? 0 : 1);  // no destructors: the heap may be in ruins
}

Verdict judge(const SuiteCheck& check, const std::string& module) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        close(ends[0]);
        run_in_child(check, module, ends[1]);
    }
    close(ends[1]);
    std::string text;
    char part[4096];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
        text.append(part, static_cast<std::size_t>(n));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        return {check.name, true,
                WTERMSIG(status) == SIGALRM
                    ? fmt::format("no end after {} seconds", SECONDS_PER_CHECK)
                    : fmt::format("ended by signal {}, {}", WTERMSIG(status),
                                  strsignal(WTERMSIG(status)))};
    if (WEXITSTATUS(status) > 1)
        throw std::runtime_error(
            fmt::format("check {} could not run: exit status {}", check.name, WEXITSTATUS(status)));
    return {check.name, WEXITSTATUS(status) == 1, text};
}

int run(int argc, char** argv) {
    CLI::App app("Runs the suite on a mutant of an implementation");
    std::string module, expect, json;
    bool all = false;
    app.add_option("module", module, "shared module with the mutant")->required();
    app.add_option("--expect", expect, "what is to come out")
        ->required()
        ->check(CLI::IsMember({"caught", "clean"}));
    app.add_flag("--all", all, "run all checks, not only up to the first that catches it");
    app.add_option("--json", json, "write checks, verdicts and machine to this file");
    CLI11_PARSE(app, argc, argv);

    load(module);  // a module that does not load must not count as a crash of the mutant
    nlohmann::ordered_json verdicts = nlohmann::ordered_json::array();
    bool caught = false;
    for (const SuiteCheck& check : attention_suite()) {
        const Verdict verdict = judge(check, module);
        verdicts.push_back({{"check", verdict.check},
                            {"what", check.what},
                            {"caught", verdict.caught},
                            {"how", verdict.how}});
        if (!verdict.caught) continue;
        fmt::print("caught by {}: {}\n", verdict.check, verdict.how);
        caught = true;
        if (!all) break;
    }
    if (!caught) fmt::print("no check of {} found a fault\n", attention_suite().size());
    if (!json.empty())
        write_file_atomically(json,
                              nlohmann::ordered_json{{"context", run_context("mutation_runner", 1)},
                                                     {"verdicts", verdicts}}
                                  .dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return caught == (expect == "caught") ? 0 : 1;
}

}  // namespace
}  // namespace fa::suite

int main(int argc, char** argv) {
    try {
        return fa::suite::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "mutation_runner: {}\n", error.what());
        return 1;
    }
}
