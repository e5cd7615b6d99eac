// Any bytes as a token shard: refused with one line, or as long as its header says.
#include <cstring>
#include <string>

#include "common/token_shard.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/refusal.h"
#include "tests/safetensors_file.h"

using namespace fa;
using namespace fa::testing;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view file = as_text(data, size);
    std::vector<std::int32_t> tokens;
    const std::string refused =
        refusal([&] { tokens = parse_token_shard(as_bytes(file), "fuzzed"); });
    if (!refused.empty()) {
        require(one_line(refused), "a refusal is one line");
        require(tokens.empty(), "nothing is returned");
        return 0;
    }
    require(size == SHARD_HEADER_BYTES + 2 * tokens.size() && !tokens.empty(), "size and count");
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const std::size_t at = SHARD_HEADER_BYTES + 2 * i;
        require(tokens[i] == data[at] + 256 * data[at + 1], "tokens are the file's");
    }
    const auto half = static_cast<std::int64_t>(tokens.size() / 2);
    const auto head = parse_token_shard(as_bytes(file), "fuzzed", half);
    require(head == std::vector(tokens.begin(), tokens.begin() + half),
            "the head is the beginning");
    const std::string outside = refusal([&] { check_token_ids(tokens, tokens.back(), "fuzzed"); });
    require(one_line(outside), "an id as large as the vocabulary is refused");
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    const auto shard = [](std::int32_t version, std::int32_t count, std::size_t tokens) {
        std::string file(SHARD_HEADER_BYTES + 2 * tokens, '\x01');
        const std::int32_t header[] = {SHARD_MAGIC, version, count};
        std::memcpy(file.data(), header, sizeof header);
        return file;
    };
    return {shard(1, 1, 1),  shard(1, 300, 300), shard(2, 1, 1),
            shard(1, -1, 1), shard(1, 0, 0),     shard(1, 0x7fffffff, 8)};
}
