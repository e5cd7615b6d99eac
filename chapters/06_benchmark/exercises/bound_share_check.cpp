#include <cmath>
#include <string>

#include "common/exercise.h"
#include FA_EXERCISE

namespace {

using fa::AttentionProblem;
using fa::Ceilings;
constexpr double PLENTY = 1e30;  // a rate that nothing waits for

/// One batch, four heads, d = 64, bf16.
AttentionProblem problem(std::int64_t len_q, std::int64_t len_kv, bool causal,
                         std::int64_t heads_kv = 4) {
    AttentionProblem p;
    p.batch = 1;
    p.heads_q = 4;
    p.heads_kv = heads_kv;
    p.len_q = len_q;
    p.len_kv = len_kv;
    p.head_dim = 64;
    p.dtype = fa::DType::bf16;
    p.causal = causal;
    return p;
}

Ceilings memory_only() {
    return {"memory only", 1e9, PLENTY, PLENTY};
}
Ceilings products_only() {
    return {"products only", PLENTY, 1e9, PLENTY};
}
Ceilings exponentials_only() {
    return {"exponentials only", PLENTY, PLENTY, 1e9};
}

/// With one ceiling at 1e9 a second and one second measured: the billions of what it counts.
std::string differ(const AttentionProblem& p, const Ceilings& ceilings, double expected,
                   double seconds = 1) {
    const double share = fa::exercise::share_of_bound(p, ceilings, seconds);
    return std::abs(share - expected) <= 1e-9 * expected
               ? ""
               : fmt::format("a share of {:.6g}, should be {:.6g} ({}, Tq {}, Tk {}{})", share,
                             expected, ceilings.name, p.len_q, p.len_kv,
                             p.causal ? ", causal" : "");
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 6.6: the share of the bound");
    exercise.invariant(
        "where a machine waits for one thing only, that thing is the bound",
        [] {
            const AttentionProblem full = problem(1000, 1000, false);
            // Four heads; Q, K, V and O of 1000 × 64 numbers of 2 bytes.
            std::string found = differ(full, memory_only(), 4 * 4 * 128e3 / 1e9);
            if (found.empty()) found = differ(full, products_only(), 4 * 256e6 / 1e9);
            if (found.empty()) found = differ(full, exponentials_only(), 4 * 1e6 / 1e9);
            if (found.empty()) found = differ(full, products_only(), 4 * 256e6 / 1e9 / 5, 5);
            return found;
        },
        "Q, K, V in and O out; 4 T² d operations a head; one exponential a score; over the time.");
    exercise.invariant(
        "what can go on side by side costs nothing extra: the longest part is the bound",
        [] {
            return differ(problem(1000, 1000, false), {"all three", 1e9, 1e12, 4e9},
                          4 * 512e3 / 1e9);
        },
        "a kernel may load, multiply and take exponentials at once. A sum would call it "
        "impossible.");
    exercise.invariant(
        "a causal mask halves the operations, by everybody's convention",
        [] { return differ(problem(1000, 1000, true), products_only(), 2 * 256e6 / 1e9); },
        "no credit for the half of the scores that nobody needs.");
    exercise.invariant(
        "an exponential is needed for each visible score and no other",
        [] {
            std::string found =
                differ(problem(1000, 1000, true), exponentials_only(), 4 * 500.5e3 / 1e9);
            // One query on many keys sees them all; of 300 queries on 100 keys, 200 see none.
            if (found.empty())
                found = differ(problem(1, 1000, true), exponentials_only(), 4 * 1e3 / 1e9);
            if (found.empty())
                found = differ(problem(300, 100, true), exponentials_only(), 4 * 5050 / 1e9);
            return found;
        },
        "query i sees problem.visible_keys(i) keys: T(T+1)/2 pairs for equal lengths, not T²/2.");
    exercise.invariant(
        "K and V are read once, mask or not, for each key/value head",
        [] {
            std::string found =
                differ(problem(1000, 1000, true), memory_only(), 4 * 4 * 128e3 / 1e9);
            if (found.empty())
                found = differ(problem(1000, 3000, false, 2), memory_only(),
                               (4 * 2 * 128e3 + 2 * 2 * 384e3) / 1e9);
            return found;
        },
        "heads of a group share K and V: count heads_kv of them, and heads_q of Q and O.");
    return exercise.finish();
}
