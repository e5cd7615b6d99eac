// Token files: llm.c's shards, raw bytes, and the check of ids against a vocabulary.
#include "common/token_shard.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "tests/refusal.h"
#include "tests/safetensors_file.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;

namespace {

/// A shard whose header holds these three numbers, followed by `tokens`.
std::string shard(std::int32_t magic, std::int32_t version, std::int32_t count,
                  const std::vector<std::uint16_t>& tokens) {
    std::string bytes(SHARD_HEADER_BYTES, '\0');
    const std::int32_t header[] = {magic, version, count};
    std::memcpy(bytes.data(), header, sizeof header);
    return bytes.append(reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2);
}

std::string refused(const std::string& bytes) {
    return refusal([&] { parse_token_shard(as_bytes(bytes), "val.bin"); });
}

}  // namespace

TEST_CASE("A shard's tokens are read, all or the first few") {
    const std::vector<std::uint16_t> tokens = {50256, 0, 65535, 1, 32768};
    const std::vector<std::int32_t> expected = {50256, 0, 65535, 1, 32768};
    const TemporaryDirectory directory;
    const auto path = directory.write("val.bin", shard(20240520, 1, 5, tokens));
    CHECK(read_token_shard(path) == expected);
    CHECK(read_token_shard(path, 5) == expected);
    CHECK(read_token_shard(path, 1000) == expected);
    CHECK(read_token_shard(path, 2) == std::vector<std::int32_t>{50256, 0});
    CHECK(read_token_shard(path, 0).empty());
    CHECK_THROWS_AS(read_token_shard(path, -1), std::invalid_argument);
}

TEST_CASE("Wrong magic, version and count are refused with the numbers") {
    const std::vector<std::uint16_t> four(4);
    REQUIRE(refused(shard(20240520, 1, 4, four)) == "");
    CHECK(refused(shard(20240801, 7, 4, four)) ==
          "val.bin: magic number is 20240801, a token shard has 20240520");
    CHECK(refused(shard(20240520, 2, 4, four)) ==
          "val.bin: version is 2, this program reads version 1 (uint16 tokens)");
    CHECK(refused(shard(20240520, 1, 0, {})) == "val.bin: header says 0 tokens");
    CHECK(refused(shard(20240520, 1, 0, four)) == "val.bin: header says 0 tokens");
    CHECK(refused(shard(20240520, 1, -1, four)) == "val.bin: header says -1 tokens");
    CHECK(refused(shard(20240520, 1, std::numeric_limits<std::int32_t>::min(), four)) ==
          "val.bin: header says -2147483648 tokens");
    CHECK(refused(shard(20240520, 1, 2147483647, four)) ==
          "val.bin: 2147483647 tokens take 4294968318 bytes with the header, the file has 1032");
}

TEST_CASE("A shard of another size than its header says is refused") {
    const std::string good = shard(20240520, 1, 4, std::vector<std::uint16_t>(4));
    for (const std::size_t size : {0u, 1u, 4u, 11u, 12u, 1023u}) {
        CAPTURE(size);
        CHECK(refused(good.substr(0, size)) ==
              fmt::format("val.bin: {} bytes are too few for a token shard, whose header has 1024",
                          size));
    }
    for (const std::size_t size : {1024u, 1030u, 1031u}) {
        CAPTURE(size);
        CHECK(refused(good.substr(0, size)) ==
              fmt::format("val.bin: 4 tokens take 1032 bytes with the header, the file has {}",
                          size));
    }
    CHECK(refused(good + "x") ==
          "val.bin: 4 tokens take 1032 bytes with the header, the file has 1033");
    // A whole shard's header before the head of its tokens, as a plain range request gives it.
    CHECK(refused(shard(20240520, 1, 100'000'000, std::vector<std::uint16_t>(4))) ==
          "val.bin: 100000000 tokens take 200001024 bytes with the header, the file has 1032");
}

TEST_CASE("Taking a few tokens of a large shard takes little memory") {
    const TemporaryDirectory directory;
    const auto path = directory.write("large.bin", shard(20240520, 1, 1'000'000'000, {}));
    std::error_code error;
    std::filesystem::resize_file(path, SHARD_HEADER_BYTES + 2'000'000'000, error);  // sparse
    REQUIRE_FALSE(error);
    const std::size_t peak = peak_resident_bytes([&] { read_token_shard(path, 65537); });
    CHECK(read_token_shard(path, 65537).size() == 65537);
    if (!sanitized()) CHECK(peak < 100'000'000);
}

TEST_CASE("An empty file, a folder and nothing at all are refused in one line") {
    const TemporaryDirectory directory;
    const auto empty = directory.write("empty.bin", "");
    CHECK(refusal([&] { read_token_shard(empty); }).starts_with(empty.string() + ": 0 bytes"));
    CHECK(one_line(refusal([&] { read_token_shard(directory.path() / "missing"); })));
    CHECK(one_line(refusal([&] { read_token_shard(directory.path()); })));
}

TEST_CASE("Ids outside the vocabulary are refused with their position") {
    const std::vector<std::int32_t> tokens = {0, 50256, 50257, -1};
    CHECK(refusal([&] { check_token_ids(tokens, 50258, "t"); }) ==
          "t: token 3 is id -1, the vocabulary has ids 0 to 50257");
    CHECK(refusal([&] { check_token_ids(tokens, 50257, "t"); }) ==
          "t: token 2 is id 50257, the vocabulary has ids 0 to 50256");
    CHECK(refusal([&] { check_token_ids(std::span(tokens).first(2), 50257, "t"); }) == "");
    CHECK(refusal([&] { check_token_ids({}, 1, "t"); }) == "");
}
