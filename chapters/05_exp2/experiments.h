#pragma once
/// @file
/// What ch05_exp2 shows: each function prints one section and adds its checks and results.

#include <cstdint>
#include <span>

#include "common/program.h"

namespace fa {

/// One row's softmax in both bases, number by number.
void show_bases(Program& program, std::span<const float> scores, float scale);

/// The ways in which the change of base goes wrong, each beside the right answer.
void show_faults(Program& program);

/// Instructions of a tile by the unit that takes them, in chapter 4's kernel and in chapter 5's.
void show_units(Program& program, std::int64_t head_dim);

/// Errors of O and LSE against fp64: of the exponential alone, and of attention.
void show_errors(Program& program, std::int64_t length, std::int64_t head_dim);

/// What is timed, and how often.
struct TimingOptions {
    std::int64_t length = 1024;      ///< on the CPU, one head, one thread
    std::int64_t gpu_length = 4096;  ///< on the GPU, batch 4, 12 heads
    std::int64_t head_dim = 64;
    int runs = 200;  ///< of each of the two, in turn
};

/// Times of the two on the CPU, taken in turn.
void show_cpu_times(Program& program, const TimingOptions& options);

/// Times of the two on the GPU, taken in turn, beside the model's prediction.
void show_gpu_times(Program& program, const TimingOptions& options);

}  // namespace fa
