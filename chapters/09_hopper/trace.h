#pragma once
/// @file
/// Clock stamps of what a warpgroup does when, to draw a timeline from.

#include "common/hopper_language.h"

namespace fa {

/// What begins at a stamp.
enum class TracePhase : std::int32_t {
    wait_keys,  ///< for a stage of K and V
    wait_turn,  ///< for the tensor cores (ping-pong)
    products,   ///< issued, and waiting for the scores
    softmax,    ///< maximum, weights, sums
    wait_sum,   ///< for the weighted sum
    correct,    ///< O rescaled, weights rounded
    finish,     ///< division, O and LSE on their way
    end         ///< of the tile
};

/// A moment in the life of a warpgroup.
struct TraceStamp {
    std::int64_t clock;  ///< cycles of its multiprocessor
    std::int32_t tile;   ///< how many the warpgroup had before
    TracePhase phase;
};

inline namespace FA_KERNEL_NAMESPACE {

/// Where the warpgroups of the first blocks leave their stamps.
struct TraceBuffer {
    GlobalPointer<TraceStamp> stamps;  ///< [blocks][warpgroups][capacity]
    GlobalPointer<int> counts;         ///< [blocks][warpgroups], from 0 on
    int blocks = 0, warpgroups = 0, capacity = 0;
};

/// Leaves the stamps of one warpgroup; without TRACED nothing remains of it.
template <bool TRACED>
class Tracer {
  public:
    /// @param leader one thread of the warpgroup
    __device__ __forceinline__ Tracer(const TraceBuffer& buffer, int warpgroup, bool leader) {
        if constexpr (TRACED) {
            const int block = static_cast<int>(blockIdx.x);
            capacity_ = leader && block < buffer.blocks ? buffer.capacity : 0;
            if (capacity_ == 0) return;
            const int place = block * buffer.warpgroups + warpgroup;
            stamps_ = buffer.stamps + std::int64_t{place} * capacity_;
            counts_ = buffer.counts + place;
        }
    }

    /// The stamps that follow are of the next tile.
    __device__ __forceinline__ void begin_tile() {
        if constexpr (TRACED) ++tile_;
    }

    /// Leaves a stamp: `phase` begins.
    __device__ __forceinline__ void mark(TracePhase phase) {
        if constexpr (TRACED) {
            if (count_ >= capacity_) return;
            stamps_[count_++] = TraceStamp{clock_cycles(), tile_, phase};
            counts_[0] = count_;
        }
    }

  private:
    GlobalPointer<TraceStamp> stamps_;
    GlobalPointer<int> counts_;
    int capacity_ = 0, count_ = 0, tile_ = -1;
};

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
