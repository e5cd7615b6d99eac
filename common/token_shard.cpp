#include "common/token_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "common/mapped_file.h"

namespace fa {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

/// How many of `available` tokens to return.
std::size_t limit(std::uint64_t available, std::int64_t max_tokens) {
    if (max_tokens < 0)
        throw std::invalid_argument(fmt::format("max_tokens is {}, must be >= 0", max_tokens));
    return static_cast<std::size_t>(std::min(available, static_cast<std::uint64_t>(max_tokens)));
}

}  // namespace

std::vector<std::int32_t> parse_token_shard(std::span<const std::byte> file,
                                            const std::string& source, std::int64_t max_tokens) {
    const auto refuse = [&](const std::string& what) {
        throw std::runtime_error(fmt::format("{}: {}", source, what));
    };
    if (file.size() < SHARD_HEADER_BYTES)
        refuse(fmt::format("{} bytes are too few for a token shard, whose header has {}",
                           file.size(), SHARD_HEADER_BYTES));
    std::array<std::int32_t, 3> header;
    std::memcpy(header.data(), file.data(), sizeof header);
    const auto [magic, version, tokens] = header;
    if (magic != SHARD_MAGIC)
        refuse(fmt::format("magic number is {}, a token shard has {}", magic, SHARD_MAGIC));
    if (version != SHARD_VERSION)
        refuse(fmt::format("version is {}, this program reads version {} (uint16 tokens)", version,
                           SHARD_VERSION));
    if (tokens <= 0) refuse(fmt::format("header says {} tokens", tokens));
    const std::uint64_t expected =
        SHARD_HEADER_BYTES + static_cast<std::uint64_t>(tokens) * sizeof(std::uint16_t);
    if (file.size() != expected)
        refuse(fmt::format("{} tokens take {} bytes with the header, the file has {}", tokens,
                           expected, file.size()));

    std::vector<std::int32_t> result(limit(static_cast<std::uint64_t>(tokens), max_tokens));
    for (std::size_t i = 0; i < result.size(); ++i) {
        std::uint16_t token;
        std::memcpy(&token, file.data() + SHARD_HEADER_BYTES + i * sizeof token, sizeof token);
        result[i] = token;
    }
    return result;
}

std::vector<std::int32_t> read_token_shard(const std::filesystem::path& path,
                                           std::int64_t max_tokens) {
    const MappedFile file(path);
    return parse_token_shard(file.bytes(), path.string(), max_tokens);
}

void check_token_ids(std::span<const std::int32_t> tokens, std::int64_t vocabulary,
                     const std::string& source) {
    const auto bad = std::find_if(tokens.begin(), tokens.end(),
                                  [&](std::int32_t id) { return id < 0 || id >= vocabulary; });
    if (bad != tokens.end())
        throw std::runtime_error(
            fmt::format("{}: token {} is id {}, the vocabulary has ids 0 to {}", source,
                        bad - tokens.begin(), *bad, vocabulary - 1));
}

}  // namespace fa
