#include "common/program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <new>
#include <string_view>
#include <system_error>

#include "common/text_table.h"
#ifdef FA_CUDA_ENABLED
#include "common/cuda/device.h"
#endif

namespace fa {
namespace {

/// Messages of libraries may span lines; ours are one line each.
void print_error(const std::string& program, std::string message) {
    std::ranges::replace(message, '\n', ' ');
    std::fflush(stdout);  // what was printed before stands before the error, also in a log file
    fmt::print(stderr, "{}: {}\n", program, message);
}

/// Finds out before the work, not after it, that its result has nowhere to go.
void check_writable_folder(const std::filesystem::path& file) {
    const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
    if (std::filesystem::is_directory(file))
        throw std::runtime_error(fmt::format("--json: {} is a folder", file.string()));
    if (access(folder.c_str(), W_OK) != 0)
        throw std::runtime_error(fmt::format("--json: cannot write into {}: {}", folder.string(),
                                             std::generic_category().message(errno)));
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// Splits at commas and parses each piece. @throws UsageError naming flag and piece
template <class T, class Parse>
std::vector<T> parse_list(const std::string& flag, std::string_view text, const char* wanted,
                          Parse parse) {
    std::vector<T> values;
    while (true) {
        const std::size_t comma = text.find(',');
        const std::string_view piece = trimmed(text.substr(0, comma));
        T value{};
        if (piece.empty() || !parse(piece, value))
            throw UsageError(fmt::format("{}: \"{}\" is not {}", flag, piece, wanted));
        values.push_back(value);
        if (comma == std::string_view::npos) return values;
        text.remove_prefix(comma + 1);
    }
}

/// True if all of `text` is one number that fits into T.
template <class T>
bool parse_number(std::string_view text, T& value) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stop == end;
}

/// Why --device cuda cannot be had, or empty.
std::string why_no_cuda() {
#ifdef FA_CUDA_ENABLED
    return why_no_gpu();
#else
    return "this program was built without CUDA";
#endif
}

/// Refuses what CLI11 2.1 reads in silence: "-1" for an unsigned number as 2^64 - 1, what does not
/// fit as the largest or as infinity, "010" as 8.
void check_numbers(const CLI::App& app) {
    const auto plain = [](const std::string& digits) {
        const std::size_t first = digits.starts_with('-') ? 1 : 0;
        return digits.size() == first + 1 || digits[first] != '0';
    };
    for (const CLI::Option* option : app.get_options()) {
        const std::string type = option->get_type_name();
        for (const std::string& text : option->results()) {
            std::int64_t integer = 0;
            std::uint64_t natural = 0;
            double real = 0;
            if ((type.starts_with("UINT") && !(parse_number(text, natural) && plain(text))) ||
                (type.starts_with("INT") && !(parse_number(text, integer) && plain(text))) ||
                (type.starts_with("FLOAT") && !parse_number(text, real)))
                throw UsageError(
                    fmt::format("{}: \"{}\" is not a {} that fits into 64 bits", option->get_name(),
                                text, type.starts_with("FLOAT") ? "number" : "whole number"));
        }
    }
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
            if (error.get_exit_code() == 0) return app_.exit(error);  // --help, on stdout
            throw UsageError(error.what());
        }
        check_numbers(app_);
        if (const std::string reason = why_no_cuda();
            device == DeviceChoice::cuda && !reason.empty())
            throw std::runtime_error(fmt::format("--device cuda: {}", reason));
        if (!json.empty()) check_writable_folder(json);

        results.context = run_context(name_, seed);
        results.context["description"] = app_.get_description();
        body();

        print_heading("Checks");
        fmt::print("{}", checks.str());
        if (!json.empty()) {
            write_file_atomically(json, results.str(checks));
            fmt::print("\nResults written to {}\n", json.string());
        }
        if (std::fflush(stdout) != 0 || std::ferror(stdout))
            throw std::runtime_error("standard output could not be written");
        return checks.all_pass() ? 0 : 1;
    } catch (const Finished&) {
        return 0;
    } catch (const UsageError& error) {
        print_error(name_, fmt::format("{} (see --help)", error.what()));
        return 2;
    } catch (const std::bad_alloc&) {
        print_error(name_, "out of memory");
        return 1;
    } catch (const std::exception& error) {
        print_error(name_, error.what());
        return 1;
    }
}

std::vector<std::int64_t> parse_lengths(const std::string& flag, const std::string& text) {
    const auto parse = [](std::string_view piece, std::int64_t& value) {
        std::int64_t unit = 1;
        const char last = piece.back();
        if (last == 'k' || last == 'K') unit = 1 << 10;
        if (last == 'm' || last == 'M') unit = 1 << 20;
        if (unit > 1) piece.remove_suffix(1);
        if (!parse_number(piece, value) || value < 0) return false;
        if (value > std::numeric_limits<std::int64_t>::max() / unit) return false;
        value *= unit;
        return true;
    };
    return parse_list<std::int64_t>(flag, text, "a length (such as 512 or 16k)", parse);
}

std::vector<float> parse_floats(const std::string& flag, const std::string& text) {
    return parse_list<float>(flag, text, "a number that fits into fp32", parse_number<float>);
}

void print_heading(const std::string& text) {
    static bool first = true;
    fmt::print("{}{}\n{}\n", first ? "" : "\n", text, std::string(display_width(text), '='));
    first = false;
}

}  // namespace fa
