#pragma once
/// @file
/// Whether the registers that warpgroups ask for are there. One that asks for more than the others
/// have given back waits for ever.

#include <algorithm>

#include "chapters/04_cuda_tiled/multiprocessor.h"

namespace fa {

/// Registers of a thread that a launch can have at most: each of the four schedulers has a quarter
/// of them, and gives every one of its warps 8 · 32 at a time (CUDA Occupancy Calculator).
constexpr int launch_registers(int threads) {
    const int warps_of_scheduler = (threads / 32 + 3) / 4;
    return std::min(255, Multiprocessor::REGISTERS / 4 / 32 / warps_of_scheduler / 8 * 8);
}

/// Registers of a block whose first 128 threads load, once they have been moved.
constexpr int moved_registers(int threads, int producer, int consumer) {
    return 128 * producer + (threads - 128) * consumer;
}

/// Whether a kernel that moves registers finds them: all that it moves were given to it at its
/// launch, and setmaxnreg takes multiples of 8 from 24 to 256 (PTX ISA, "setmaxnreg").
/// @return true, too, for one that moves none
template <class Config>
constexpr bool finds_its_registers() {
    if constexpr (requires { Config::PRODUCER_REGISTERS; }) {
        constexpr int PRODUCER = Config::PRODUCER_REGISTERS, CONSUMER = Config::CONSUMER_REGISTERS;
        return PRODUCER % 8 == 0 && CONSUMER % 8 == 0 && PRODUCER >= 24 && CONSUMER <= 256 &&
               moved_registers(Config::THREADS, PRODUCER, CONSUMER) <=
                   Config::THREADS * launch_registers(Config::THREADS);
    }
    return true;
}

}  // namespace fa
