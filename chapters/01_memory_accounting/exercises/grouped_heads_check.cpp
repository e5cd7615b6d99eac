#include <string>
#include <vector>

#include "common/cost_model.h"
#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::AttentionProblem;

std::string differ(double found, double expected) {
    return found == expected ? "" : fmt::format("{} bytes, should be {}", found, expected);
}

AttentionProblem gpt2(std::int64_t heads_kv) {
    return {.batch = 4,
            .heads_q = 12,
            .heads_kv = heads_kv,
            .len_q = 1024,
            .len_kv = 1024,
            .head_dim = 64,
            .dtype = fa::DType::bf16};
}

}  // namespace

int main() {
    using namespace fa::exercise;
    fa::Exercise exercise("Exercise 1.4: grouped heads");
    exercise.invariant(
        "as many key/value heads as query heads: Q, K, V and O are four equal tensors",
        [] { return differ(held_bytes(gpt2(12)), 4.0 * 4 * 12 * 1024 * 64 * 2); },
        "batch x heads x tokens x channels elements each, and 2 bytes an element in bf16.");
    exercise.invariant(
        "12 query heads on 3: K and V shrink to a quarter, Q and O stay",
        [] { return differ(held_bytes(gpt2(3)), (2.0 * 12 + 2.0 * 3) * 4 * 1024 * 64 * 2); },
        "which of the four tensors have heads_kv heads?");
    exercise.invariant(
        "one query, as in a model that writes: only Q and O are short",
        [] {
            AttentionProblem problem = gpt2(3);
            problem.len_q = 1;
            return differ(held_bytes(problem), fa::qkvo_bytes(problem));
        },
        "Q and O have len_q rows a head, K and V have len_kv.");
    exercise.invariant(
        "the cache holds K and V of every layer, and no Q",
        [] {
            for (const std::int64_t heads_kv : {1, 3, 12}) {
                const AttentionProblem problem = gpt2(heads_kv);
                if (std::string found =
                        differ(cache_bytes(problem, 12), fa::kv_cache_bytes(problem, 12));
                    !found.empty())
                    return fmt::format("with {} key/value heads: {}", heads_kv, found);
            }
            return std::string();
        },
        "two tensors, heads_kv heads, len_kv tokens, and one such pair for each layer.");
    exercise.invariant(
        "fp32 takes twice as much as bf16",
        [] {
            AttentionProblem problem = gpt2(3);
            problem.dtype = fa::DType::f32;
            return differ(held_bytes(problem) + cache_bytes(problem, 2),
                          fa::qkvo_bytes(problem) + fa::kv_cache_bytes(problem, 2));
        },
        "size_of(problem.dtype) is the number of bytes of an element.");
    return exercise.finish();
}
