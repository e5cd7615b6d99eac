#include "common/results.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "build_info.h"
#include "common/machine.h"

#ifdef FA_CUDA_ENABLED
#include "common/cuda/device.h"
#endif

namespace fa {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, std::string_view doing) {
    const std::string reason = std::generic_category().message(errno);
    throw std::runtime_error(fmt::format("cannot {} {}: {}", doing, path.string(), reason));
}

/// An open file that is deleted on scope exit unless renamed to its final name.
class TemporaryFile {
  public:
    /// Beside `target`, because a rename is atomic within one file system only.
    explicit TemporaryFile(const fs::path& target) : target_(target) {
        static std::atomic<int> count{0};
        path_ = target;
        path_ += fmt::format(".{}-{}.tmp", getpid(), count++);
        descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor_ < 0) fail(path_, "create");
    }
    ~TemporaryFile() {
        if (descriptor_ >= 0) close(descriptor_);
        if (!path_.empty()) unlink(path_.c_str());
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    int descriptor() const { return descriptor_; }

    void become_target() {
        // Without fsync a crash of the machine may leave the new name with none of the content.
        if (fsync(descriptor_) != 0) fail(path_, "write");
        if (close(std::exchange(descriptor_, -1)) != 0) fail(path_, "write");
        if (rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "write");
        path_.clear();
    }

  private:
    fs::path target_, path_;
    int descriptor_ = -1;
};

void write_all(int descriptor, std::string_view text, const fs::path& path) {
    while (!text.empty()) {
        const ssize_t written = write(descriptor, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail(path, "write");
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// What follows "key<blanks>:<blanks>" or "key=" in the first line of a file that starts with the
/// key, without quotation marks; "unknown" if there is none.
std::string value_in_file(const char* path, std::string_view key) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(key)) continue;
        const std::size_t start = line.find_first_not_of(" \t:=\"", key.size());
        if (start == std::string::npos) continue;
        return line.substr(start, line.find_last_not_of(" \t\"") - start + 1);
    }
    return "unknown";
}

/// A pipe or /dev/null is written to; renaming a file over it would replace it.
bool is_written_in_place(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

/// The file that a symbolic link names, whether it is there yet or not, so that it is replaced and
/// not the link.
fs::path resolved(const fs::path& path) {
    constexpr int MOST_LINKS = 40;  // as many as Linux follows
    fs::path file = path;
    std::error_code ignored;
    for (int links = 0; fs::is_symlink(file, ignored); ++links) {
        if (links == MOST_LINKS) {
            errno = ELOOP;
            fail(path, "write");
        }
        file = file.parent_path() / fs::read_symlink(file);  // an absolute target stands alone
    }
    return file;
}

}  // namespace

void check_can_be_written(const fs::path& path) {
    if (fs::is_directory(path))
        throw std::runtime_error(fmt::format("{} is a folder", path.string()));
    if (!is_written_in_place(path))
        TemporaryFile(resolved(path));
    else if (access(path.c_str(), W_OK) != 0)
        fail(path, "write");
}

void write_file_atomically(const fs::path& path, const std::string& text) {
    if (is_written_in_place(path)) {
        const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (descriptor < 0) fail(path, "write");
        try {
            write_all(descriptor, text, path);
        } catch (...) {
            close(descriptor);
            throw;
        }
        if (close(descriptor) != 0) fail(path, "write");
        return;
    }
    TemporaryFile file(resolved(path));
    write_all(file.descriptor(), text, path);
    file.become_target();
}

nlohmann::ordered_json run_context(const std::string& program, std::uint64_t seed) {
    utsname system{};
    uname(&system);
    nlohmann::ordered_json context;
    context["program"] = program;
    context["machine"] = value_in_file("/proc/cpuinfo", "model name");
    context["cores"] = std::thread::hardware_concurrency();
    context["threads"] = omp_get_max_threads();
    context["memory_bytes"] = machine_memory_bytes();
    // Without the kernel's release, which says more about a host than about a number.
    context["os"] = fmt::format("{}, {} {}", value_in_file("/etc/os-release", "PRETTY_NAME"),
                                system.sysname, system.machine);
#ifdef FA_CUDA_ENABLED
    if (why_no_gpu().empty()) {
        const GpuProperties& gpu = gpu_properties();
        const auto version = [](int number) {  // 13010 is 13.1
            return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
        };
        context["gpu"] = gpu.name;
        context["gpu_multiprocessors"] = gpu.multiprocessors;
        context["driver"] = fmt::format("CUDA {}", version(gpu.driver_version));
        context["cuda"] = version(gpu.runtime_version);
    }
#endif
    context["compiler"] = BUILD_COMPILER;
    context["build_type"] = BUILD_TYPE;
    context["flags"] = BUILD_FLAGS;
    context["commit"] = BUILD_COMMIT;
    context["seed"] = seed;
    context["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
    return context;
}

std::string describe_machine(const nlohmann::ordered_json& context) {
    const auto text = [&](const char* key) { return context.at(key).get<std::string>(); };
    return fmt::format("Machine: {}, {} cores; {}; {} {}; seed {}", text("machine"),
                       context.at("cores").get<int>(), text("os"), text("compiler"), text("flags"),
                       context.at("seed").get<std::uint64_t>());
}

nlohmann::ordered_json Results::row(const Implementation& implementation,
                                    const AttentionProblem& problem) {
    nlohmann::ordered_json row;
    row["implementation"] = implementation.name;
    row["device"] = name_of(implementation.device);
    row["batch"] = problem.batch;
    row["heads_q"] = problem.heads_q;
    row["heads_kv"] = problem.heads_kv;
    row["len_q"] = problem.len_q;
    row["len_kv"] = problem.len_kv;
    row["head_dim"] = problem.head_dim;
    row["dtype"] = name_of(problem.dtype);
    row["causal"] = problem.causal;
    row["direction"] = "forward";
    return row;
}

std::string Results::str(const Checks& checks) const {
    nlohmann::ordered_json document;
    document["context"] = context;
    document["rows"] = rows;
    document["checks"] = nlohmann::ordered_json::array();
    for (const Check& check : checks.list())
        document["checks"].push_back({{"name", check.name},
                                      {"goal", check.goal},
                                      {"measured", check.measured},
                                      {"pass", check.pass}});
    for (const auto& [key, value] : extras.items()) {
        if (document.contains(key))
            throw std::logic_error(fmt::format("results: extra \"{}\" would replace a part", key));
        document[key] = value;
    }
    // Text that is no UTF-8 (a file name, say) must not cost the whole file.
    return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace fa
