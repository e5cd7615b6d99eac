/// @file
/// The frame of the programs: exit status, one-line errors, JSON results, files that are whole or
/// not there. Runs program_fixture as a user would.

#include "common/program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "common/machine.h"
#include "tests/run_program.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
using namespace fa;

namespace {

ProgramRun fixture(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), FA_PROGRAM_FIXTURE);
    return run_program(arguments);
}

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// One line, which starts with the program's name.
bool one_line(const std::string& err) {
    return err.starts_with("program_fixture: ") && std::ranges::count(err, '\n') == 1 &&
           err.ends_with('\n');
}

}  // namespace

TEST_CASE("exit status 0 when every check passes") {
    const ProgramRun run = fixture({});
    CHECK(run.exit_status == 0);
    CHECK(run.err.empty());
    CHECK(run.out ==
          "Fixture\n=======\nseed 1 lengths 1\n\n"
          "Checks\n======\n"
          "check     goal  measured  result\n"
          "--------  ----  --------  ------\n"
          "an error  <= 1       0.5    pass\n"
          "a count    = 4         4    pass\n");
}

TEST_CASE("exit status 1 when a check fails, is NaN, or there is none") {
    for (const char* end : {"fail", "nan", "nothing"}) {
        CAPTURE(end);
        const ProgramRun run = fixture({"--end", end});
        CHECK(run.exit_status == 1);
        const bool nothing = std::string(end) == "nothing";
        CHECK(run.err == (nothing ? "program_fixture: nothing was checked\n" : ""));
        CHECK((run.out.find("FAIL") != std::string::npos) != nothing);
    }
}

TEST_CASE("exit status 1 and one line when something goes wrong") {
    const ProgramRun thrown = fixture({"--end", "throw"});
    CHECK(thrown.exit_status == 1);
    CHECK(thrown.err == "program_fixture: file x: no such thing\n");
    const ProgramRun memory = fixture({"--end", "memory"});
    CHECK(memory.exit_status == 1);
    CHECK(memory.err == "program_fixture: out of memory\n");
    const ProgramRun cuda = fixture({"--device", "cuda"});
    if (cuda.exit_status != 0) {  // as it is on a machine without a GPU
        CHECK(cuda.exit_status == 1);
        CHECK(one_line(cuda.err));
        CHECK(cuda.err.find("--device cuda: ") != std::string::npos);
    }
}

TEST_CASE("exit status 2 and one line for wrong usage") {
    const std::vector<std::vector<std::string>> wrong{
        {"--no-such-flag"},
        {"stray"},
        {"--seed"},
        {"--seed", "x"},
        {"--seed", "-1"},
        {"--seed", "1.5"},
        {"--device", "tpu"},
        {"--seed", "99999999999999999999"},
        {"--seed", "010"},
        {"--seed", "0x10"},
        {"--end", "usage"},
        {"--lengths", "1,,2"},
        {"--lengths", "9999999999999999999"},
        {"--lengths", "8796093022208m"},
        {"--lengths", "0"},
        {"--lengths", ""},
        {"--json", ""},
        {"--rate", "nan"},
        {"--rate", "inf"},
        {"--rate", "-inf"},
        {"--rate", "0"},
        {"--rate", "-1"},
        {"--rate", "1e999"},
        {"--share", "1.5"},
        {"--share", "nan"},
        {"--most", "-1"},
    };
    for (const auto& arguments : wrong) {
        CAPTURE(arguments.front());
        CAPTURE(arguments.back());
        const ProgramRun run = fixture(arguments);
        CHECK(run.exit_status == 2);
        CHECK(one_line(run.err));
    }
    CHECK(fixture({"--end", "usage"}).err ==
          "program_fixture: --a and --b do not go together (see --help)\n");
    CHECK(fixture({"--rate", "0"}).err ==
          "program_fixture: --rate: must be above 0, not 0 (see --help)\n");
    CHECK(fixture({"--share", "2"}).err ==
          "program_fixture: --share: must be 0 to 1, not 2 (see --help)\n");
    CHECK(fixture({"--most", "-1"}).err ==
          "program_fixture: --most: must be at least 0, not -1 (see --help)\n");
    CHECK(fixture({"--lengths", "0"}).err ==
          "program_fixture: --lengths: 0 is not between 1 and 1048576 (see --help)\n");
    CHECK(fixture({"--device", "tpu"}).err ==
          "program_fixture: --device: \"tpu\" is none of auto, cpu, cuda (see --help)\n");
}

TEST_CASE("--help goes to stdout and is no error") {
    const ProgramRun run = fixture({"--help"});
    CHECK(run.exit_status == 0);
    CHECK(run.err.empty());
    for (const char* part : {"Ends in the way", "--json", "--seed", "--device", "--end"})
        CHECK(run.out.find(part) != std::string::npos);
}

TEST_CASE("--json writes context, rows, checks and extras") {
    const testing::TemporaryDirectory folder;
    const fs::path file = folder.path() / "results.json";
    for (const char* end : {"pass", "fail"}) {  // a failed check is a result too
        const ProgramRun run = fixture({"--end", end, "--seed", "42", "--json", file.string()});
        CHECK(run.exit_status == (std::string(end) == "pass" ? 0 : 1));
        const auto json = nlohmann::json::parse(read(file));
        for (const char* key : {"program", "machine", "cores", "threads", "memory_bytes", "os",
                                "compiler", "build_type", "flags", "commit", "seed", "date"}) {
            CAPTURE(key);
            CHECK(json["context"].contains(key));
        }
        CHECK(json["context"]["program"] == "program_fixture");
        CHECK(json["context"]["seed"] == 42);
        CHECK(json["context"]["memory_bytes"] > 1e8);
        CHECK(json["context"]["date"].get<std::string>().size() == 20);
        CHECK(json["rows"][0]["value"].is_null());  // NaN
        CHECK(json["trace"] == nlohmann::json({1, 2, 3}));
        CHECK(json["checks"].size() == 2);
        CHECK(json["checks"][0]["name"] == "an error");
        CHECK(json["checks"][1]["pass"] == (std::string(end) == "pass"));
    }
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);  // no temporary file left
}

TEST_CASE("a program that fails writes no results, and says early that it cannot") {
    const testing::TemporaryDirectory folder;
    const fs::path file = folder.path() / "results.json";
    CHECK(fixture({"--end", "throw", "--json", file.string()}).exit_status == 1);
    CHECK(fs::is_empty(folder.path()));
    for (const fs::path& path :
         {folder.path() / "no" / "such" / "file", folder.path(), fs::path("/proc/results.json")}) {
        const ProgramRun run = fixture({"--json", path.string()});
        CHECK(run.exit_status == 1);
        CHECK(one_line(run.err));
        CHECK(run.out.empty());  // before the work
    }
}

TEST_CASE("output that cannot be written is an error") {
    const ProgramRun run =
        run_program({"sh", "-c", std::string("'") + FA_PROGRAM_FIXTURE + "' > /dev/full"});
    CHECK(run.exit_status == 1);
    CHECK(run.err == "program_fixture: standard output: cannot be written to\n");
    // Enough of it is noticed while printing.
    const ProgramRun much = run_program(
        {"sh", "-c", std::string("'") + FA_PROGRAM_FIXTURE + "' --end much > /dev/full"});
    CHECK(much.exit_status == 1);
    CHECK(much.err.starts_with("program_fixture: standard output: "));
    CHECK(one_line(much.err));
}

TEST_CASE("--help that cannot be written is an error, as is the end of a program that is done") {
    for (const char* flags : {"--help", "--end finished"}) {
        CAPTURE(flags);
        const ProgramRun run = run_program(
            {"sh", "-c", fmt::format("'{}' {} > /dev/full", FA_PROGRAM_FIXTURE, flags)});
        CHECK(run.exit_status == 1);
        CHECK(run.err == "program_fixture: standard output: cannot be written to\n");
    }
    CHECK(fixture({"--end", "finished"}).exit_status == 0);
}

TEST_CASE("an error that cannot be told is still an exit status") {
    for (const char* nowhere : {"2>&-", "2>/dev/full"})
        for (const auto& [wrong, status] :
             {std::pair{"--no-such-flag", 2}, {"--end usage", 2}, {"--end throw", 1}}) {
            const char* const flags = wrong;  // clang 14 lets no lambda capture a binding
            CAPTURE(nowhere);
            CAPTURE(flags);
            const ProgramRun run = run_program(
                {"sh", "-c", fmt::format("'{}' {} {}", FA_PROGRAM_FIXTURE, flags, nowhere)});
            CHECK(run.exit_status == status);
            CHECK(run.signal == 0);
        }
}

TEST_CASE("a problem larger than the machine's memory is refused before the work") {
    const AttentionProblem fits{.len_q = 1000, .len_kv = 1000, .head_dim = 64};
    check_fits_in_memory(fits);
    const double machine = static_cast<double>(machine_memory_bytes());
    CHECK(machine > 1e8);
    CHECK_THROWS_AS(check_fits_in_memory(fits, machine), std::runtime_error);
    AttentionProblem large = fits;
    large.batch = large.heads_q = large.heads_kv = large.len_q = 1 << 20;
    large.len_kv = std::int64_t{1} << 40;
    CHECK_THROWS_AS(check_fits_in_memory(large), std::runtime_error);
}

TEST_CASE("Ctrl-C leaves no half-written file") {
    for (int round = 0; round < 8; ++round) {
        const testing::TemporaryDirectory folder;
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            if (chdir(folder.path().c_str()) != 0) _exit(1);
            dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
            execl(FA_PROGRAM_FIXTURE, FA_PROGRAM_FIXTURE, "--end", "write", nullptr);
            _exit(127);
        }
        const fs::path file = folder.path() / "written";
        for (int wait = 0; wait < 2000 && !fs::exists(file); ++wait)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
        kill(child, SIGINT);
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status));
        CHECK(WTERMSIG(status) == SIGINT);
        const std::string text = read(file);
        CHECK(text.size() == (1 << 24) + 3);
        CHECK(text.ends_with("xend"));
    }
}

TEST_CASE("lists of lengths") {
    CHECK(parse_lengths("--n", "512,1024,16k") == std::vector<std::int64_t>{512, 1024, 16384});
    CHECK(parse_lengths("--n", " 1 , 2M") == std::vector<std::int64_t>{1, 2097152});
    CHECK(parse_lengths("--n", "0") == std::vector<std::int64_t>{0});
    for (const char* bad : {"", ",", "1,", "x", "k", "1.5", "-1", "1kk", "1 2", "0x10", "+1",
                            "9223372036854775808", "9007199254740992k"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_lengths("--n", bad), UsageError);
    }
    CHECK_THROWS_WITH(parse_lengths("--n", "1,abc"),
                      "--n: \"abc\" is not a length (such as 512 or 16k)");
}

TEST_CASE("numbers that become fp32") {
    CHECK(as_fp32("--s", 0.1) == 0.1f);
    CHECK(as_fp32("--s", 0) == 0);
    CHECK(as_fp32("--s", -1e-40) < 0);
    CHECK_THROWS_WITH(as_fp32("--s", 1e300), "--s: 1e+300 does not fit into fp32");
    CHECK_THROWS_WITH(as_fp32("--s", -1e-50), "--s: -1e-50 is 0 in fp32");
}

TEST_CASE("pieces between commas") {
    CHECK(split_at_commas("a") == std::vector<std::string>{"a"});
    CHECK(split_at_commas("a,b") == std::vector<std::string>{"a", "b"});
    CHECK(split_at_commas("") == std::vector<std::string>{""});
    CHECK(split_at_commas(",a ,,") == std::vector<std::string>{"", "a ", "", ""});
}

TEST_CASE("lists of floats") {
    CHECK(parse_floats("--s", "1,3.5,-2e-3") == std::vector<float>{1.0f, 3.5f, -2e-3f});
    const std::vector<float> special = parse_floats("--s", "inf,-inf,nan");
    CHECK(special[0] == std::numeric_limits<float>::infinity());
    CHECK(special[1] == -std::numeric_limits<float>::infinity());
    CHECK(special[2] != special[2]);
    for (const char* bad : {"", "1,", "x", "1e99", "1..2", "1f"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(parse_floats("--s", bad), UsageError);
    }
}
