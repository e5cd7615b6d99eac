#pragma once
/// @file
/// The one door for every attention of this course: a problem, its tensors, and what an
/// implementation must offer. The exact semantics are on the page docs/semantics.md; in short
///
///     O   = softmax(scale · Q·Kᵀ + mask) · V        LSE = log Σ exp(scale · q·k)   (natural log)
///
/// with the causal mask aligned bottom-right, and rows that see no key giving O = 0, LSE = −∞.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/dtype.h"
#include "common/tensor.h"

namespace fa {

/// What is to be computed, without the data.
struct AttentionProblem {
    std::int64_t batch = 1;
    std::int64_t heads_q = 1;   ///< query heads; a multiple of heads_kv
    std::int64_t heads_kv = 1;  ///< key/value heads; query head h reads head h / (heads_q/heads_kv)
    std::int64_t len_q = 0;     ///< queries per head, 0 allowed
    std::int64_t len_kv = 0;    ///< keys per head, 0 allowed
    std::int64_t head_dim = 64;
    DType dtype = DType::f32;
    std::optional<float> scale{};  ///< unset: 1/sqrt(head_dim). Set: taken literally, 0 and < 0 too
    bool causal = false;           ///< key j visible to query i iff j <= i + len_kv - len_q

    /// The factor on Q·Kᵀ that is used.
    float effective_scale() const;

    /// The key/value head that query head `head_q` reads.
    constexpr std::int64_t head_kv(std::int64_t head_q) const {
        return head_q / (heads_q / heads_kv);
    }

    /// Number of leading keys that query `i` sees: keys 0 … visible_keys(i) − 1.
    constexpr std::int64_t visible_keys(std::int64_t i) const {
        if (!causal) return len_kv;
        const std::int64_t n = i + 1 + len_kv - len_q;
        return n < 0 ? 0 : (n > len_kv ? len_kv : n);
    }

    Shape q_shape() const { return {batch, heads_q, len_q, head_dim}; }  ///< also O's
    Shape kv_shape() const { return {batch, heads_kv, len_kv, head_dim}; }

    /// Floating-point operations by the usual convention, 4·B·H·Tq·Tk·d, halved when causal.
    double flops() const;
};

/// A one-line description, e.g. "B4 H12/12 Tq1024 Tk1024 d64 bf16 causal".
std::string describe(const AttentionProblem& problem);

/// LSE, fp32, shape [batch, heads_q, len_q] with tokens contiguous. `data` may be null: not wanted.
struct LseView {
    float* data = nullptr;
    std::int64_t stride_batch = 0;
    std::int64_t stride_head = 0;

    /// The len_q values of one head.
    float* row(std::int64_t batch, std::int64_t head) const {
        return data + batch * stride_batch + head * stride_head;
    }
};

/// The data of a problem. All views live where the implementation runs: host or device memory.
struct AttentionTensors {
    ConstTensorView q;  ///< [batch, heads_q, len_q, head_dim]
    ConstTensorView k;  ///< [batch, heads_kv, len_kv, head_dim]
    ConstTensorView v;  ///< [batch, heads_kv, len_kv, head_dim]
    TensorView o;       ///< [batch, heads_q, len_q, head_dim], every element is written; its memory
                        ///< is apart from that of Q, K and V
    LseView lse;        ///< [batch, heads_q, len_q]
};

/// Where an implementation runs.
enum class Device {
    cpu,
    cuda,
    executor  ///< CUDA kernels run on the CPU by common/executor: exact, counted, slow
};
/// The device's name in tables and results.
std::string_view name_of(Device device);

/// How to run, as opposed to what.
struct Launch {
    int threads = 0;         ///< CPU threads; 0: as many as OpenMP offers
    void* stream = nullptr;  ///< a cudaStream_t for CUDA implementations; null: the default stream

    /// CPU threads, as many as OpenMP offers for 0.
    int thread_count() const;
};

/// An entry of the list of implementations (chapters/implementations.h). Plain function pointers:
/// an implementation has no state between calls.
struct Implementation {
    std::string_view name;  ///< unique, e.g. "cpu_blocked"
    int chapter = 0;        ///< the chapter that teaches it
    Device device = Device::cpu;
    std::string_view summary;  ///< one line for tables and --help
    /// Rounds S to 16 bits before the softmax, as eager frameworks do: a lesson (chapter 7), held
    /// to wider error bounds than the rest.
    bool rounds_scores = false;
    /// Rows beside values that are not finite are computed in another way (chapter 9): as right as
    /// the others, but not the same bits as without such values.
    bool recomputes_rows = false;

    /// Empty if the problem can be run, else the reason why not, in words with the numbers.
    std::string (*why_unsupported)(const AttentionProblem&) = nullptr;

    /// Empty if the tensors can be read and written where they lie, else the reason why not, in
    /// words with the numbers. Null: any strides will do.
    std::string (*why_tensors_unsupported)(const AttentionProblem&,
                                           const AttentionTensors&) = nullptr;

    /// Scratch memory that run() needs beside the outputs, in bytes.
    std::size_t (*workspace_bytes)(const AttentionProblem&, const Launch&) = nullptr;

    /// Computes O, and LSE if wanted. Called through attention() only, which has checked problem,
    /// tensors and workspace. `workspace` is 64-byte aligned (256 on a device), of any content.
    void (*run)(const AttentionProblem&, const AttentionTensors&, std::span<std::byte> workspace,
                const Launch&) = nullptr;
};

/// Thrown when an implementation is asked for a problem that it does not support.
class Unsupported : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Checks a problem by itself.
/// @throws std::invalid_argument naming the field: a negative extent, head_dim < 1, heads_kv < 1,
///         heads_q not a multiple of heads_kv, a scale that is not finite, or a product of extents
///         that passes 2^60.
void validate(const AttentionProblem& problem);

/// Checks that shapes and element types of the tensors are those of the problem, that memory is
/// there and aligned to its elements, that no stride is negative, and that O and LSE do not overlap
/// themselves (zero strides are fine for inputs: a broadcast).
/// @throws std::invalid_argument naming the tensor, what it is and what it should be.
void validate(const AttentionProblem& problem, const AttentionTensors& tensors);

/// The door. Validates, refuses what the implementation does not support before anything is
/// launched, checks the workspace, and runs. Never falls back to something else.
/// @param workspace at least `implementation.workspace_bytes(problem, launch)` bytes, 64-byte
///        aligned, in the memory of the implementation's device.
/// @throws std::invalid_argument if problem, tensors or workspace do not fit together, or
///         launch.threads is negative
/// @throws Unsupported with the implementation's reason
void attention(const Implementation& implementation, const AttentionProblem& problem,
               const AttentionTensors& tensors, std::span<std::byte> workspace,
               const Launch& launch = {});

}  // namespace fa
