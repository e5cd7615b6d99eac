#pragma once
/// @file
/// One run of an implementation under observation: inputs laid out among NaN, outputs and workspace
/// filled with garbage beforehand and guarded, everything that must not be written compared after.

#include <string>
#include <vector>

#include "common/attention.h"
#include "tests/suite_memory.h"

namespace fa::suite {

/// Dense inputs on the host, widened to fp32. Each value is one that the problem's type can hold.
struct Inputs {
    std::vector<float> q;  ///< [batch, heads_q, len_q, head_dim]
    std::vector<float> k;  ///< [batch, heads_kv, len_kv, head_dim]
    std::vector<float> v;  ///< as k
};

/// How the tensors lie in memory.
enum class Layout {
    gaps,         ///< an odd number of elements between rows, spare rows between heads
    dense,        ///< [batch, head, token, dim], margins around
    tight,        ///< dense, and the block ends with the last element
    token_major,  ///< [batch, token, head, dim]
    packed_qkv,  ///< Q, K and V of a token side by side: [batch, token, heads_q + 2·heads_kv, dim]
    far,         ///< distances beyond 2^31 elements, in sparse memory
};
std::string_view name_of(Layout layout);

/// Makes the gaps of Layout::gaps whole 16-byte chunks from now on: some kernels move rows by other
/// means if that is possible, and are to be seen doing it among gaps. For head dimensions that are
/// multiples of eight elements.
void use_gaps_of_chunks();

/// What outputs and workspace hold before the run.
enum class Fill { nan, number };

/// The conditions of a run.
struct RunOptions {
    Layout layout = Layout::gaps;
    Fill fill = Fill::nan;
    int threads = 0;
    bool want_lse = true;
    bool broadcast_kv = false;    ///< K and V of batch 0 serve all batches: a batch stride of 0
    std::size_t phase = 0;        ///< bytes by which Q, K, V and O miss a 64-byte boundary
    std::int64_t spare_rows = 3;  ///< NaN rows after each head's tokens (Layout::gaps)
};

/// What came out.
struct Run {
    std::vector<float> o;             ///< dense [batch, heads_q, len_q, head_dim], widened
    std::vector<float> lse;           ///< dense [batch, heads_q, len_q]; empty if not wanted
    std::vector<std::string> faults;  ///< bytes written outside O, LSE and workspace
    std::size_t held_beside = 0;      ///< most bytes it held beside its workspace, on the heap or,
                                      ///< on a GPU, in device buffers
};

/// Lays out, poisons, runs, and looks after what was touched.
/// @throws what fa::attention() throws
Run run_case(const Implementation& implementation, const AttentionProblem& problem,
             const Inputs& inputs, const RunOptions& options = {});

/// As an index into a vector.
constexpr std::size_t idx(std::int64_t i) {
    return static_cast<std::size_t>(i);
}

/// True if the two hold the same bits (so NaN equals the same NaN, and 0 differs from -0).
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace fa::suite
