#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/exercise.h"
#include "common/hopper_language.h"
#include FA_EXERCISE

namespace {

using fa::BFloat16;
using fa::exercise::Use;

constexpr int ROWS = 8;                    // tokens of a block of keys
constexpr std::uint32_t BOX = ROWS * 128;  // bytes
constexpr int MOST_STAGES = 4;
constexpr std::uint32_t FULL = MOST_STAGES * BOX, EMPTY = FULL + 8 * MOST_STAGES;

/// What a run takes from the reader; the rest is as it should be.
struct Readers {
    bool consumer = false, producer = false, hand_back = false;
};

Use filled(int i, int stages, bool by_reader) {
    if (by_reader) return fa::exercise::filled(i, stages);
    return {.stage = i % stages, .parity = i / stages % 2 == 0 ? 0u : 1u};
}
Use emptied(int i, int stages, bool by_reader) {
    if (by_reader) return fa::exercise::emptied(i, stages);
    return {.stage = i % stages, .parity = i / stages % 2 == 0 ? 1u : 0u};
}
int arrivals(int warpgroups, bool by_reader) {
    return by_reader ? fa::exercise::arrivals(warpgroups) : 4 * warpgroups;
}
bool hands_back(int thread, bool by_reader) {
    return by_reader ? fa::exercise::hands_back(thread) : thread % 32 == 0;
}

std::uint32_t at(int stage) {
    return static_cast<std::uint32_t>(stage);
}

/// A warpgroup of which one lane loads `blocks` boxes, and others that read all of each: right if
/// every number of box i is i.
/// @return how many numbers were not
int wrong_numbers(int stages, int blocks, int warpgroups, Readers readers,
                  const fa::executor::Options& options) {
    std::vector<BFloat16> numbers;
    for (int i = 0; i < blocks * ROWS * 64; ++i)
        numbers.emplace_back(static_cast<float>(i / (ROWS * 64)));
    alignas(16) static std::array<BFloat16, 64 * ROWS * 64> memory;
    std::copy(numbers.begin(), numbers.end(), memory.begin());
    const std::int64_t rows = std::int64_t{blocks} * ROWS;
    const fa::TensorMap map = fa::executor::make_executor_map(memory.data(), {64, rows, 1, 1},
                                                              {64, 64 * rows, 64 * rows}, ROWS);
    int wrong = 0;
    const auto kernel = [&] {
        const int thread = static_cast<int>(threadIdx.x) % 128;
        if (threadIdx.x == 0) {
            for (int s = 0; s < stages; ++s) {
                fa::init_barrier(FULL + 8 * at(s), 1);
                fa::init_barrier(EMPTY + 8 * at(s), arrivals(warpgroups, readers.hand_back));
            }
            fa::publish_barriers();
        }
        __syncthreads();
        if (threadIdx.x < 128) {
            if (thread == 0)
                for (int i = 0; i < blocks; ++i) {
                    const Use use = emptied(i, stages, readers.producer);
                    fa::wait_phase(EMPTY + 8 * at(use.stage), use.parity);
                    fa::arrive_expecting(FULL + 8 * at(use.stage), BOX);
                    fa::load_box(at(use.stage) * BOX, map, FULL + 8 * at(use.stage), 0, i * ROWS, 0,
                                 0);
                }
            return;
        }
        for (int i = 0; i < blocks; ++i) {
            const Use use = filled(i, stages, readers.consumer);
            fa::wait_phase(FULL + 8 * at(use.stage), use.parity);
            const std::uint32_t place =
                at(use.stage) * BOX + 8 * static_cast<std::uint32_t>(thread);
            const auto found = fa::load_shared<fa::Packed<BFloat16, 4>>(place);
            for (int e = 0; e < 4; ++e)
                wrong += static_cast<float>(found[e]) != static_cast<float>(i);
            fa::warp_barrier();
            if (hands_back(thread, readers.hand_back)) fa::arrive(EMPTY + 8 * at(use.stage));
        }
    };
    fa::executor::run({1}, {static_cast<unsigned>(128 * (1 + warpgroups))}, EMPTY + 8 * MOST_STAGES,
                      kernel, options);
    return wrong;
}

/// The first fault over rings, numbers of blocks up to `rounds` rounds, and orders of the warps.
std::string search(int rounds, Readers readers) {
    for (const int stages : {2, 3, 4, 1})
        for (const int warpgroups : {1, 2})
            for (const int blocks : {stages * rounds, stages * rounds - 1})
                for (std::uint64_t order = 0; order < 6; ++order) {
                    const fa::executor::Options options{.reverse_order = order == 1,
                                                        .shuffle = order < 2 ? 0 : order};
                    std::string found;
                    try {
                        const int wrong =
                            wrong_numbers(stages, blocks, warpgroups, readers, options);
                        if (wrong != 0)
                            found = fmt::format("{} numbers were not of the block that was wanted",
                                                wrong);
                    } catch (const fa::executor::Fault& fault) {
                        found = fault.what();
                    }
                    if (!found.empty())
                        return fmt::format("{} stages, {} blocks, {} warpgroups: {}", stages,
                                           blocks, warpgroups, found);
                }
    return "";
}

}  // namespace

int main() {
    fa::Exercise exercise("Exercise 9.1: who waits for which phase");
    exercise.invariant(
        "block i lies in stage i modulo the number of stages",
        [] {
            for (const int stages : {1, 2, 3, 6})
                for (int i = 0; i < 20; ++i)
                    for (const int stage : {fa::exercise::filled(i, stages).stage,
                                            fa::exercise::emptied(i, stages).stage})
                        if (stage != i % stages)
                            return fmt::format("block {} of a ring of {}: stage {}", i, stages,
                                               stage);
            return std::string();
        },
        "producer and consumers go round the ring in step.");
    exercise.invariant(
        "a consumer reads the block that it wants, in every round",
        [] { return search(5, {.consumer = true}); },
        "in round r it waits for the end of phase r of `full`. A wait for the parity of the phase "
        "before returns at once, and what lies there is old, or on its way.");
    exercise.invariant(
        "the producer fills an empty ring without waiting",
        [] { return search(1, {.producer = true}); },
        "nobody arrives at `empty` before a block has been there. Which parity has \"ended\" while "
        "a barrier is in its phase 0?");
    exercise.invariant(
        "the producer overwrites no block that is still read, in any round",
        [] { return search(5, {.producer = true}); },
        "in round r it waits for the end of phase r - 1 of `empty`.");
    exercise.invariant(
        "each phase of `empty` waits for every warp, and ends",
        [] { return search(5, {.consumer = true, .producer = true, .hand_back = true}); },
        "nothing keeps the four warps of a warpgroup together here: none can speak for another. "
        "And as many must be expected as arrive.");
    return exercise.finish();
}
