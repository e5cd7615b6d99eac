// A fuzz target without libFuzzer: tries its seeds and a fixed series of mutations of them, so that
// every compiler's build, with or without sanitizers, runs the target in its tests.
//
//   fuzz_X_replay [MUTATIONS]           seeds, then that many mutations, the same in every run
//   fuzz_X_replay --write-seeds FOLDER  writes the seeds as files, for libFuzzer to start from
//   fuzz_X_replay --input FILE          tries one file
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

#include "tests/fuzz/fuzz_target.h"

namespace {

/// Runs the target on exactly sized copies, so that AddressSanitizer sees a read past the end.
/// Keeps the present input in a file until it has passed: after a crash it is there, to be tried
/// again.
class Runner {
  public:
    explicit Runner(std::string kept) : kept_(std::move(kept)) {
        descriptor_ = ::open(kept_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (descriptor_ < 0) throw std::runtime_error("cannot write " + kept_);
    }
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;
    ~Runner() {
        ::close(descriptor_);
        std::filesystem::remove(kept_);
    }

    void run(const std::string& input) {
        if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, input.data(), input.size(),
                                                         0) != static_cast<ssize_t>(input.size()))
            throw std::runtime_error("cannot write " + kept_);
        const std::vector<std::uint8_t> exact(input.begin(), input.end());
        LLVMFuzzerTestOneInput(exact.data(), exact.size());
    }

  private:
    std::string kept_;
    int descriptor_;
};

/// One small change of a kind that has broken readers of files before.
void mutate(std::string& input, const std::vector<std::string>& seeds, std::mt19937_64& random) {
    static constexpr std::array<std::string_view, 14> PIECES = {"18446744073709551615",
                                                                "9223372036854775808",
                                                                "4294967296",
                                                                "-1",
                                                                "1e9",
                                                                "[",
                                                                "]",
                                                                "{",
                                                                "}",
                                                                "\"a\":",
                                                                ",",
                                                                "\xf0\x9f\xa6\x99",
                                                                "\xff",
                                                                "  "};
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::size_t at = below(input.size() + 1);
    switch (below(7)) {
        case 0:  // one bit
            if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
            break;
        case 1:  // one byte
            if (at < input.size()) input[at] = static_cast<char>(below(256));
            break;
        case 2:  // cut off
            input.resize(at);
            break;
        case 3:  // take out
            input.erase(at, below(16));
            break;
        case 4:  // put in
            input.insert(at, PIECES[below(PIECES.size())]);
            break;
        case 5:  // say twice
            input.insert(at, input.substr(at, below(64)));
            break;
        case 6: {  // go on as another seed does
            const std::string& other = seeds[below(seeds.size())];
            input = input.substr(0, at) + other.substr(std::min(at, other.size()));
            break;
        }
    }
}

void write_seeds(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    const std::vector<std::string> seeds = fuzz_seeds();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
        std::ofstream out(folder / ("seed" + std::to_string(i)), std::ios::binary);
        out << seeds[i] << std::flush;
        if (!out) throw std::runtime_error("cannot write to " + folder.string());
    }
}

int run(const std::vector<std::string>& arguments, const std::string& program) {
    if (arguments.size() == 2 && arguments[0] == "--write-seeds") {
        write_seeds(arguments[1]);
        return 0;
    }
    Runner runner(program + ".input");
    if (arguments.size() == 2 && arguments[0] == "--input") {
        std::ifstream in(arguments[1], std::ios::binary);
        if (!in) throw std::runtime_error("cannot read " + arguments[1]);
        runner.run({std::istreambuf_iterator<char>(in), {}});
        return 0;
    }
    std::size_t mutations = 10000;
    if (arguments.size() == 1) {
        const char* end = arguments[0].data() + arguments[0].size();
        const auto [stopped, error] = std::from_chars(arguments[0].data(), end, mutations);
        if (error != std::errc() || stopped != end) return 2;
    } else if (!arguments.empty()) {
        return 2;
    }

    const std::vector<std::string> seeds = fuzz_seeds();
    for (const std::string& seed : seeds) runner.run(seed);
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < mutations; ++i) {
        std::string input = seeds[i % seeds.size()];
        for (std::size_t n = 1 + random() % 4; n > 0; --n) mutate(input, seeds, random);
        runner.run(input);
    }
    std::printf("%zu seeds and %zu mutations\n", seeds.size(), mutations);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string program = std::filesystem::path(argv[0]).filename().string();
    int status = 1;
    try {
        status = run({argv + 1, argv + argc}, program);
        if (status == 2)
            std::fprintf(stderr, "usage: %s [MUTATIONS | --write-seeds FOLDER | --input FILE]\n",
                         program.c_str());
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
    }
    return status;
}
