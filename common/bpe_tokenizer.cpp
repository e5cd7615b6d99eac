#include "common/bpe_tokenizer.h"

#include <fmt/format.h>

#include <limits>
#include <queue>
#include <stdexcept>
#include <tuple>

namespace fa {

/// The tokens of one piece, as a linked list over its bytes, and the pairs that may be merged. Kept
/// from piece to piece so that its memory is allocated once.
struct BpeTokenizer::Scratch {
    /// A token, at the index of its first byte.
    struct Node {
        std::int32_t id;  ///< NONE once the token has been merged into the one before it
        std::int32_t previous, next;
    };
    /// A pair of neighbours, named by its left one; out of date if that pair has another rank now.
    struct Candidate {
        std::int32_t rank, left;
        /// The queue puts the greatest on top; we want the lowest rank, leftmost first.
        bool operator<(const Candidate& other) const {
            return std::tie(other.rank, other.left) < std::tie(rank, left);
        }
    };
    static constexpr std::int32_t NONE = -1;

    std::vector<Node> nodes;
    std::priority_queue<Candidate> candidates;
    std::vector<std::int32_t> merged;  ///< left ends of the merges of the present rank
};

// encoder.py looks for the pair of lowest rank in the whole word, merges each of its occurrences
// from left to right, and starts again: O(n²) for n bytes. A priority queue of pairs finds the same
// merges in O(n log n). To be the same for any list of merges, pairs that a merge creates must wait
// until all occurrences of the present rank are done, even if a list gives them a lower rank.
void BpeTokenizer::encode_piece(std::string_view piece, Scratch& scratch,
                                std::vector<std::int32_t>& out) const {
    constexpr std::int32_t NONE = Scratch::NONE;
    if (piece.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
        throw std::length_error(fmt::format("a word of {} bytes is too long", piece.size()));
    const auto size = static_cast<std::int32_t>(piece.size());
    auto& nodes = scratch.nodes;
    const auto node = [&](std::int32_t i) -> Scratch::Node& {
        return nodes[static_cast<std::size_t>(i)];
    };
    const auto merge_at = [&](std::int32_t left) -> const Merge* {
        if (left == NONE || node(left).id == NONE || node(left).next == NONE) return nullptr;
        const auto found = merges_.find(pair_key(node(left).id, node(node(left).next).id));
        return found == merges_.end() ? nullptr : &found->second;
    };
    const auto consider = [&](std::int32_t left) {
        if (const Merge* merge = merge_at(left)) scratch.candidates.push({merge->rank, left});
    };

    nodes.clear();
    for (std::int32_t i = 0; i < size; ++i) {
        const auto byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
        nodes.push_back({byte_ids_[byte], i - 1, i + 1 < size ? i + 1 : NONE});
    }
    for (std::int32_t i = 0; i + 1 < size; ++i) consider(i);

    auto& candidates = scratch.candidates;
    while (!candidates.empty()) {
        const std::int32_t rank = candidates.top().rank;
        scratch.merged.clear();
        for (; !candidates.empty() && candidates.top().rank == rank; candidates.pop()) {
            const std::int32_t left = candidates.top().left;
            const Merge* merge = merge_at(left);
            if (merge == nullptr || merge->rank != rank) continue;
            Scratch::Node& kept = node(left);
            Scratch::Node& removed = node(kept.next);
            kept.id = merge->result;
            kept.next = removed.next;
            if (kept.next != NONE) node(kept.next).previous = left;
            removed.id = NONE;
            scratch.merged.push_back(left);
        }
        for (const std::int32_t left : scratch.merged) {
            consider(node(left).previous);
            consider(left);
        }
    }
    for (std::int32_t i = 0; i != NONE; i = node(i).next) out.push_back(node(i).id);
}

std::vector<std::int32_t> BpeTokenizer::encode(std::string_view text) const {
    std::vector<std::int32_t> tokens;
    Scratch scratch;
    for (const std::string_view piece : gpt2_pieces(text)) encode_piece(piece, scratch, tokens);
    return tokens;
}

std::vector<std::int32_t> BpeTokenizer::encode_with_end_of_text(std::string_view text) const {
    if (!end_of_text_)
        throw std::runtime_error(fmt::format("the vocabulary has no token {}", END_OF_TEXT));
    std::vector<std::int32_t> tokens;
    for (;;) {
        const std::size_t mark = text.find(END_OF_TEXT);
        const std::vector<std::int32_t> document = encode(text.substr(0, mark));
        tokens.insert(tokens.end(), document.begin(), document.end());
        if (mark == std::string_view::npos) return tokens;
        tokens.push_back(*end_of_text_);
        text.remove_prefix(mark + END_OF_TEXT.size());
    }
}

std::string BpeTokenizer::decode(std::span<const std::int32_t> tokens) const {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] < 0 || tokens[i] >= vocabulary_size())
            throw std::out_of_range(fmt::format("token {} is id {}, the vocabulary has ids 0 to {}",
                                                i, tokens[i], vocabulary_size() - 1));
        text += token_bytes_[static_cast<std::size_t>(tokens[i])];
    }
    return text;
}

}  // namespace fa
