#include "chapters/03_blocked_attention/fast_attention.h"

#include "chapters/03_blocked_attention/fast_kernel.h"

namespace fa {

FastTile fast_tile() {
    return {register_tiles::BLOCK_Q, register_tiles::BLOCK_KV};
}

std::size_t fast_workspace_per_thread(const AttentionProblem& problem) {
    Carver counter;
    register_tiles::Scratch sizes(counter, problem);
    return counter.used();
}

constinit const Implementation CPU_FAST = register_tiles::entry<register_tiles::ExpWeights>(
    "cpu_fast", 3, "blocked, queries in vector lanes, all threads");

}  // namespace fa
