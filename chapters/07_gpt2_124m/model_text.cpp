#include "chapters/07_gpt2_124m/model_text.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string_view>

#include "common/bpe_tokenizer.h"
#include "common/mapped_file.h"
#include "common/token_shard.h"

namespace fa {
namespace {

/// The vocabulary whose tokens are bytes.
constexpr std::int64_t BYTES = 256;

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
    const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
    if (bpe && bpe->end_of_text()) return bpe->encode_with_end_of_text(text);
    return tokenizer.encode(text);
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_of(const std::filesystem::path& model_directory,
                                        const Gpt2Config& config) {
    std::unique_ptr<Tokenizer> tokenizer;
    if (BpeTokenizer::files_in(model_directory))
        tokenizer = std::make_unique<BpeTokenizer>(BpeTokenizer::from_directory(model_directory));
    else if (config.vocabulary == BYTES)
        tokenizer = std::make_unique<ByteTokenizer>();
    // Fewer are fine: some networks pad their vocabulary to a round number.
    if (tokenizer && tokenizer->vocabulary_size() > config.vocabulary)
        throw std::runtime_error(
            fmt::format("{}: the tokenizer has {} ids, the network a vocabulary of {}",
                        model_directory.string(), tokenizer->vocabulary_size(), config.vocabulary));
    return tokenizer;
}

TokenFormat token_format_of(const std::filesystem::path& path) {
    return path.extension() == ".bin" ? TokenFormat::shard : TokenFormat::text;
}

std::vector<std::int32_t> read_tokens(const std::filesystem::path& path, TokenFormat format,
                                      const Gpt2Config& config, const Tokenizer* tokenizer) {
    const MappedFile file(path);
    const std::span<const std::byte> bytes = file.bytes();
    std::vector<std::int32_t> tokens;
    if (format == TokenFormat::shard)
        tokens = parse_token_shard(bytes, path.string());
    else if (tokenizer)
        tokens = encode(*tokenizer, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    else
        throw std::runtime_error(fmt::format(
            "{}: is text, and no tokenizer (vocab.json and merges.txt) lies beside the model",
            path.string()));
    if (tokens.empty()) throw std::runtime_error(fmt::format("{}: holds no token", path.string()));
    check_token_ids(tokens, config.vocabulary, path.string());
    return tokens;
}

}  // namespace fa
