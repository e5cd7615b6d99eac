/// @file
/// Checks that NaN cannot pass, results that are written whole or not at all.

#include "common/results.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>

#include "common/checks.h"
#include "tests/temporary_directory.h"

namespace fs = std::filesystem;
using namespace fa;

namespace {

std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

auto entries(const fs::path& folder) {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator{});
}

constexpr double NAN_VALUE = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a check passes at its bound and not beyond it") {
    Checks checks;
    checks.at_most("a", 1.0, 1.0);
    checks.at_most("b", std::nextafter(1.0, 2.0), 1.0);
    checks.at_least("c", 1.0, 1.0);
    checks.at_least("d", std::nextafter(1.0, 0.0), 1.0);
    checks.equal("e", 3, 3);
    checks.equal("f", 3, std::nextafter(3.0, 4.0));
    const std::vector<bool> expected{true, false, true, false, true, false};
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(checks.list()[i].pass == expected[i]);
    CHECK(!checks.all_pass());
}

TEST_CASE("NaN fails every check") {
    Checks checks;
    checks.at_most("a", NAN_VALUE, 1.0);
    checks.at_most("b", 1.0, NAN_VALUE);
    checks.at_least("c", NAN_VALUE, 1.0);
    checks.equal("d", NAN_VALUE, NAN_VALUE);
    for (const Check& check : checks.list()) CHECK(!check.pass);
}

TEST_CASE("no check at all is no pass") {
    Checks checks;
    CHECK(!checks.all_pass());
    checks.that("a", "yes", "yes", true);
    CHECK(checks.all_pass());
}

TEST_CASE("goal and measured never read the same when they differ") {
    Checks checks;
    checks.at_most("a", 1.0004e-6, 1e-6);
    checks.at_most("b", 3.6e-7, 1e-6);
    checks.equal("c", 134217728, 134217729);
    CHECK(checks.list()[0].goal == "<= 1e-06");
    CHECK(checks.list()[0].measured == "1.0004e-06");
    CHECK(checks.list()[1].measured == "3.6e-07");
    CHECK(checks.list()[2].goal == "= 134217729");
    CHECK(checks.list()[2].measured == "134217728");
}

TEST_CASE("a row names implementation and problem, the document has one shape") {
    Implementation implementation;
    implementation.name = "cpu_test";
    AttentionProblem problem;
    problem.batch = 2;
    problem.heads_q = 12;
    problem.heads_kv = 4;
    problem.len_q = 128;
    problem.len_kv = 256;
    problem.dtype = DType::bf16;
    problem.causal = true;
    Results results;
    results.rows.push_back(Results::row(implementation, problem));
    results.rows[0]["median_ms"] = NAN_VALUE;
    results.rows[0]["max_error"] = std::numeric_limits<double>::infinity();
    results.rows[0]["reason"] = "bad byte \xff";
    Checks checks;
    checks.at_most("error", NAN_VALUE, 1);
    const auto document = nlohmann::ordered_json::parse(results.str(checks));
    CHECK(document["rows"][0].dump() ==
          R"({"implementation":"cpu_test","device":"cpu","batch":2,"heads_q":12,"heads_kv":4,)"
          R"("len_q":128,"len_kv":256,"head_dim":64,"dtype":"bf16","causal":true,)"
          R"("direction":"forward","median_ms":null,"max_error":null,"reason":"bad byte )"
          "\xef\xbf\xbd\"}");
    CHECK(document["checks"][0].dump() ==
          R"({"name":"error","goal":"<= 1","measured":"NaN","pass":false})");
    CHECK(document.begin().key() == "context");
    results.extras["rows"] = 1;
    CHECK_THROWS_AS(results.str(checks), std::logic_error);
}

TEST_CASE("a number that is not known is null") {
    CHECK(number_or_null(true, 3) == 3);
    CHECK(number_or_null(false, 3).is_null());
    CHECK(number_or_null(std::optional(0.5)) == 0.5);
    CHECK(number_or_null(std::optional(0.0)).is_number());
    CHECK(number_or_null(std::optional<std::int64_t>()).is_null());
    // Within a list, where it must stay one value and not become a list of its own.
    const nlohmann::ordered_json row{{"known", number_or_null(true, 7)},
                                     {"unknown", number_or_null(false, 7)}};
    CHECK(row.dump() == R"({"known":7,"unknown":null})");
}

TEST_CASE("a file is written whole, replaced whole, and nothing is left beside it") {
    const testing::TemporaryDirectory folder;
    const fs::path file = folder.path() / "results.json";
    write_file_atomically(file, "first");
    CHECK(read(file) == "first");
    write_file_atomically(file, std::string(1 << 20, 'x'));
    CHECK(fs::file_size(file) == 1 << 20);
    write_file_atomically(file, "");
    CHECK(read(file).empty());
    CHECK(entries(folder.path()) == 1);

    const mode_t mask = umask(0);
    umask(mask);
    struct stat status {};
    REQUIRE(stat(file.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == (0666 & ~mask));  // as any program would create it
}

TEST_CASE("a file that cannot be written leaves what was there and says why") {
    const testing::TemporaryDirectory folder;
    CHECK_THROWS_WITH_AS(write_file_atomically(folder.path() / "none" / "x.json", "text"),
                         doctest::Contains("No such file or directory"), std::runtime_error);
    fs::create_directory(folder.path() / "taken");
    CHECK_THROWS_AS(write_file_atomically(folder.path() / "taken", "text"), std::runtime_error);
    CHECK(fs::is_directory(folder.path() / "taken"));
    CHECK(entries(folder.path()) == 1);
    CHECK_THROWS_WITH_AS(write_file_atomically("/dev/full", "text"),
                         "cannot write /dev/full: No space left on device", std::runtime_error);
}

TEST_CASE("devices are written to and not replaced, links keep pointing") {
    const testing::TemporaryDirectory folder;
    write_file_atomically("/dev/null", "text");
    CHECK(fs::is_character_file("/dev/null"));
    const fs::path target = folder.path() / "target", link = folder.path() / "link";
    write_file_atomically(target, "old");
    fs::create_symlink("target", link);
    write_file_atomically(link, "new");
    CHECK(fs::is_symlink(link));
    CHECK(read(target) == "new");
    // Also to a file that is not there yet, by way of another folder and another link.
    fs::create_directory(folder.path() / "sub");
    const fs::path dangling = folder.path() / "sub" / "dangling";
    fs::create_symlink("../second", dangling);
    fs::create_symlink("third", folder.path() / "second");
    check_can_be_written(dangling);
    write_file_atomically(dangling, "written");
    CHECK(fs::is_symlink(dangling));
    CHECK(fs::is_symlink(folder.path() / "second"));
    CHECK(read(folder.path() / "third") == "written");
    const fs::path circle = folder.path() / "circle";
    fs::create_symlink("circle", circle);
    CHECK_THROWS_WITH_AS(write_file_atomically(circle, "text"),
                         doctest::Contains("Too many levels of symbolic links"),
                         std::runtime_error);
    CHECK(fs::is_symlink(circle));
}
