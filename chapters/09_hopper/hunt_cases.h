#pragma once
/// @file
/// What the hunt for rare faults tries: one case after the other, from a number and a seed.

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/attention.h"
#include "common/random.h"

namespace fa {

/// How the tensors of a case lie in memory. Rows begin at multiples of 16 bytes, as TMA wants it,
/// and what lies between two rows is NaN.
enum class HuntLayout {
    heads_first,   ///< [batch, head, token, channel], each tensor by itself
    tokens_first,  ///< [batch, token, head, channel], each tensor by itself
    packed         ///< as tokens_first, and K and V in one tensor; Q too, if it is as long
};

/// One case.
struct HuntCase {
    std::int64_t number = 0;
    static constexpr int LAST = 0, PAIRED = 9;
    int step = LAST;  ///< of the ladder, 1 … 8; or the last kernels, by themselves or in pairs
    AttentionProblem problem;
    HuntLayout layout = HuntLayout::heads_first;
    bool in_graph = false;  ///< launches recorded in a CUDA graph and replayed
    bool delayed = false;   ///< the kernel with delays at its barriers (common/barrier_delay.h)
    std::int64_t delayed_warp = 0;  ///< modulo the kernel's warps
    int delay_nanoseconds = 0;
};

/// So many lengths of Q are tried: 1, 3, 5 … 2049.
inline constexpr std::int64_t HUNT_LENGTHS = 1025;

/// The case number n. The length of Q follows from n alone, so that every one has come when
/// HUNT_LENGTHS cases have; all else is drawn: length of K, mask, type, 64, 128 or any number of
/// channels up to 128, grouped heads, one head or thousands, layout, a scale of 0 or below, graphs,
/// delays.
HuntCase hunt_case(std::int64_t n, Random& random);

/// The case in words.
std::string describe(const HuntCase& c);

/// Where tensors lie that are in one piece of memory.
struct HuntTensors {
    AttentionTensors tensors;
    std::size_t input_bytes = 0;    ///< of Q, K and V, from the beginning
    std::size_t output_bytes = 0;   ///< of O and LSE behind them, padding included
    std::int64_t row_elements = 0;  ///< from one row to the next, in all tensors
    std::byte* outputs = nullptr;   ///< where they begin
    std::size_t bytes() const { return input_bytes + output_bytes; }
};

/// Lays the tensors of a case out.
/// @param memory a multiple of 256; null to learn how many bytes are needed
HuntTensors lay_out(const HuntCase& c, std::byte* memory);

}  // namespace fa
