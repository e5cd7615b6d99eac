#pragma once
/// @file
/// Files of token ids: llm.c's shards, and raw bytes for byte-level models.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace fa {

/// llm.c's shard (https://github.com/karpathy/llm.c, llmc/dataloader.h): a header of 256 int32, of
/// which the first three are magic, version and number of tokens, then one uint16 per token, all
/// little-endian. The file has exactly 1024 + 2·tokens bytes.
constexpr std::int32_t SHARD_MAGIC = 20240520;
constexpr std::int32_t SHARD_VERSION = 1;
constexpr std::size_t SHARD_HEADER_BYTES = 256 * sizeof(std::int32_t);

/// Checks a shard held in memory and returns its first tokens.
/// @param file       all bytes of the file; beyond the header only those of the returned tokens are
/// read
/// @param source     what to call the file in messages
/// @param max_tokens return at most this many, >= 0
/// @throws std::runtime_error naming source and numbers if magic, version or size are wrong, or it
///         holds no token
std::vector<std::int32_t> parse_token_shard(
    std::span<const std::byte> file, const std::string& source,
    std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max());

/// The first tokens of a shard, at most `max_tokens`. The file must be whole: the head of a shard
/// cut off by a range request has a header that promises more than is there and is refused
/// (scripts/fetch_gpt2.sh writes the count of what it fetched into the header).
/// @throws std::runtime_error as MappedFile and parse_token_shard
std::vector<std::int32_t> read_token_shard(
    const std::filesystem::path& path,
    std::int64_t max_tokens = std::numeric_limits<std::int64_t>::max());

/// Refuses ids outside [0, vocabulary).
/// @param source what to call the origin of the tokens in messages
/// @throws std::runtime_error naming source, the first bad position, the id and the vocabulary
void check_token_ids(std::span<const std::int32_t> tokens, std::int64_t vocabulary,
                     const std::string& source);

}  // namespace fa
