#include "chapters/09_hopper/hunt_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace fa {
namespace {

using Clock = std::chrono::steady_clock;

pid_t started(const std::vector<std::string>& command) {
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child = 0;
    const int error =
        posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        throw std::system_error(error, std::generic_category(), "cannot start " + command.at(0));
    return child;
}

/// Waits until the child has ended or the time has come. @return whether it has ended
bool ended(pid_t child, Clock::time_point until, int& status) {
    for (;;) {
        const pid_t found = waitpid(child, &status, WNOHANG);
        if (found == child) return true;
        if (found < 0 && errno != EINTR)
            throw std::system_error(errno, std::generic_category(), "waitpid");
        if (Clock::now() >= until) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

/// How a process has ended; empty if well.
std::string fault_of(int status) {
    if (WIFSIGNALED(status))
        return fmt::format("ended by signal {}, {}", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0) return fmt::format("exit status {}", WEXITSTATUS(status));
    return {};
}

/// A folder of its own, removed with what is in it.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string name = std::filesystem::temp_directory_path() / "hunt.XXXXXX";
        if (mkdtemp(name.data()) == nullptr)
            throw std::system_error(errno, std::generic_category(), name);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

}  // namespace

HuntBag hunt_in_process(const std::vector<std::string>& command, const std::filesystem::path& json,
                        std::chrono::milliseconds limit) {
    const pid_t child = started(command);
    int status = 0;
    std::string fault;
    if (ended(child, Clock::now() + limit, status)) {
        fault = fault_of(status);
    } else {
        fault = fmt::format("no end after {} ms", limit.count());
        kill(child, SIGKILL);
        if (!ended(child, Clock::now() + std::chrono::seconds(30), status))
            throw std::runtime_error(fmt::format("process {} cannot be ended", child));
    }
    HuntBag bag;
    if (std::ifstream file(json); file) {
        try {
            bag = HuntBag::from_json(nlohmann::ordered_json::parse(file).at("hunt"));
        } catch (const nlohmann::json::exception& error) {
            if (fault.empty()) fault = error.what();
        }
    } else if (fault.empty()) {
        fault = "no results";
    }
    bag.processes = 1;
    bag.failed_processes = fault.empty() ? 0 : 1;
    if (bag.first_fault.empty()) bag.first_fault = fault;
    return bag;
}

void hunt_in_processes(Program& program, double seconds, int processes) {
    print_heading("Hunt in processes, measured");
    const TemporaryFolder folder;
    HuntBag all;
    for (int i = 0; i < processes; ++i) {
        const std::uint64_t seed = program.seed + static_cast<std::uint64_t>(i);
        const auto json = folder.path() / fmt::format("{}.json", i);
        std::vector<std::string> command{"/proc/self/exe",
                                         "--hunt",
                                         fmt::format("{}", seconds),
                                         "--seed",
                                         fmt::format("{}", seed),
                                         "--json",
                                         json};
        if (program.device != DeviceChoice::automatic) {
            command.push_back("--device");
            command.push_back(program.device == DeviceChoice::cuda ? "cuda" : "cpu");
        }
        // To start and to leave the GPU takes seconds, and a case 20 s at most.
        HuntBag bag = hunt_in_process(
            command, json,
            std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * std::min(seconds, 1e9))) +
                std::chrono::seconds(60));
        if (!bag.first_fault.empty())
            bag.first_fault = fmt::format("seed {}: {}", seed, bag.first_fault);
        fmt::print("seed {}: {} launches{}\n", seed, bag.launches,
                   bag.failed_processes > 0 ? ", failed: " + bag.first_fault : "");
        std::fflush(stdout);
        all += bag;
    }
    fmt::print("\n{} processes. ", all.processes);
    report_hunt(program, all);
}

}  // namespace fa
