#include "common/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <new>

#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "common/cuda/device.h"
#endif

namespace fa {
namespace {

/// Messages of libraries may span lines; ours are one line each. It is called where an exception is
/// handled, so it must not throw another: if stderr cannot be written to, the exit status says it.
void print_error(const std::string& program, std::string message) {
    std::ranges::replace(message, '\n', ' ');
    std::fflush(stdout);  // what was printed before stands before the error, also in a log file
    std::fputs(fmt::format("{}: {}\n", program, message).c_str(), stderr);
}

/// @throws std::runtime_error if anything that was printed did not arrive
void flush_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
        throw std::runtime_error("cannot be written to");
}

/// Why --device cuda cannot be had, or empty.
std::string why_no_cuda() {
#ifdef FA_CUDA_ENABLED
    return why_no_gpu();
#else
    return "this program was built without CUDA";
#endif
}

}  // namespace

Program::Program(std::string name, std::string description)
    : app_(std::move(description), name), name_(std::move(name)) {
    app_.option_defaults()->always_capture_default();
    app_.add_option("--json", json, "write the results to this file as JSON");
    app_.add_option("--seed", seed, "seed of the random inputs");
    app_.add_option_function<std::string>(
            "--device",
            [this](const std::string& text) {
                if (text == "auto")
                    device = DeviceChoice::automatic;
                else if (text == "cpu")
                    device = DeviceChoice::cpu;
                else if (text == "cuda")
                    device = DeviceChoice::cuda;
                else
                    throw CLI::ValidationError(
                        "--device", fmt::format("\"{}\" is none of auto, cpu, cuda", text));
            },
            "where to run: auto, cpu or cuda")
        ->default_str("auto")
        ->type_name("DEVICE");
}

Device Program::where() const {
    return device == DeviceChoice::cpu || !why_no_cuda().empty() ? Device::cpu : Device::cuda;
}

int Program::run(int argc, const char* const* argv, const std::function<void()>& body) {
    try {
        try {
            app_.parse(argc, argv);
        } catch (const CLI::ParseError& error) {
            if (error.get_exit_code() != 0) throw UsageError(error.what());
            app_.exit(error);  // --help, on stdout
            flush_output();
            return 0;
        }
        check_values(app_);
        if (const std::string reason = why_no_cuda();
            device == DeviceChoice::cuda && !reason.empty())
            throw std::runtime_error(fmt::format("--device cuda: {}", reason));
        if (!json.empty()) {
            try {
                check_can_be_written(json);  // before the work, not after it
            } catch (const std::runtime_error& error) {
                throw std::runtime_error(fmt::format("--json: {}", error.what()));
            }
        }

        results.context = run_context(name_, seed);
        results.context["description"] = app_.get_description();
        try {
            body();
        } catch (const Finished&) {
            flush_output();
            return 0;
        }

        print_heading("Checks");
        fmt::print("{}", checks.str());
        if (!json.empty()) {
            write_file_atomically(json, results.str(checks));
            fmt::print("\nResults written to {}\n", json.string());
        }
        flush_output();
        if (checks.list().empty()) throw std::runtime_error("nothing was checked");
        return checks.all_pass() ? 0 : 1;
    } catch (const UsageError& error) {
        print_error(name_, fmt::format("{} (see --help)", error.what()));
        return 2;
    } catch (const std::bad_alloc&) {
        print_error(name_, "out of memory");
        return 1;
    } catch (const std::exception& error) {
        // What printing throws does not say what could not be written.
        print_error(name_, std::ferror(stdout) ? fmt::format("standard output: {}", error.what())
                                               : error.what());
        return 1;
    }
}

void print_heading(const std::string& text) {
    static bool first = true;
    fmt::print("{}{}\n{}\n", first ? "" : "\n", text, std::string(display_width(text), '='));
    first = false;
}

}  // namespace fa
