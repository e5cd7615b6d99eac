/// @file
/// A program in the frame of the chapters' programs, with one flag that chooses how it ends.
/// program_test.cpp runs it.

#include <fmt/format.h>

#include <limits>
#include <new>
#include <stdexcept>

#include "common/program.h"
#include "common/progress.h"

int main(int argc, char** argv) {
    fa::Program program("program_fixture", "Ends in the way that it is asked to.");
    std::string end = "pass";
    std::string lengths = "1";
    program.flags().add_option("--end", end, "how to end");
    program.flags().add_option("--lengths", lengths, "a list of lengths");
    double rate = 1, share = 0;
    std::int64_t most = 0;
    program.flags().add_option("--rate", rate, "a rate")->check(fa::above_zero());
    program.flags().add_option("--share", share, "a share")->check(fa::between(0, 1));
    program.flags().add_option("--most", most, "a count")->check(fa::at_least(0));
    return program.run(argc, argv, [&] {
        fa::print_heading("Fixture");
        const auto parsed = fa::parse_lengths("--lengths", lengths, 1, 1 << 20);
        fmt::print("seed {} lengths {}\n", program.seed, parsed.size());
        if (end == "usage") throw fa::UsageError("--a and --b do not go together");
        if (end == "throw") throw std::runtime_error("file x:\nno such thing");
        if (end == "memory") throw std::bad_alloc();
        if (end == "nothing") return;
        if (end == "finished") throw fa::Finished();
        if (end == "much") fmt::print("{}\n", std::string(1 << 20, 'x'));
        if (end == "write") {
            // Writes one large file over and over until somebody ends the program.
            const std::string text = std::string(1 << 24, 'x') + "end";
            fmt::print("writing\n");
            std::fflush(stdout);
            while (true) fa::write_file_atomically("written", text);
        }
        fa::Progress progress("working", 3);
        for (int i = 0; i < 3; ++i) progress.advance();
        program.results.rows.push_back({{"value", std::numeric_limits<double>::quiet_NaN()}});
        program.results.extras["trace"] = {1, 2, 3};
        program.checks.at_most("an error", end == "nan" ? std::nan("") : 0.5, 1.0);
        program.checks.equal("a count", end == "fail" ? 3 : 4, 4);
    });
}
