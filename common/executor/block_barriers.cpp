// A block's barriers in shared memory and its named ones.

#include <fmt/format.h>

#include "common/executor/block.h"

namespace fa::executor {

void Block::init_barrier(std::size_t offset, int arrivals) {
    if (offset % 8 != 0 || offset + 8 > shared_bytes_)
        fail(fmt::format("barrier at byte {} of {}: not a multiple of 8, or beyond the end", offset,
                         shared_bytes_));
    if (arrivals < 1 || arrivals >= 1 << 20) fail(fmt::format("barrier for {} arrivals", arrivals));
    const std::size_t place = at(offset);
    if (hopper().barriers.at(place) != nullptr)
        fail(fmt::format("the barrier at byte {} is initialised a second time", offset));
    note_race(place, 8, /*is_write=*/true);
    hopper().barriers.init(place, current_, arrivals, clocks_);
}

PhaseBarrier& Block::barrier_at(std::size_t place) {
    PhaseBarrier* const barrier = hopper().barriers.at(place);
    if (barrier == nullptr)
        fail(fmt::format("no barrier was initialised at byte {} of shared memory", place));
    if (barrier->initialiser != current_ &&
        races_.would_race(clocks_.known(current_), place, 8, /*is_write=*/false))
        fail(fmt::format(
            "the barrier at byte {} is used with no barrier of the block or cluster between its "
            "initialisation and this thread",
            place));
    return *barrier;
}

void Block::publish_barriers() {
    hopper().barriers.publish(current_);
}

void Block::arrive(std::size_t offset, std::uint32_t bytes) {
    maybe_yield();
    check(barrier_at(at(offset)).arrive(current_, bytes, clocks_));
}

/// Notes that the running thread reaches into a block of its cluster.
void Block::reach(std::size_t block) {
    if (block >= blocks()) fail(fmt::format("block {} of a cluster of {}", block, blocks()));
    if (block == own_block()) return;
    const auto first = threads_.begin() + static_cast<std::ptrdiff_t>(block * block_threads_);
    if (std::all_of(first, first + static_cast<std::ptrdiff_t>(block_threads_),
                    [](const Thread& thread) { return thread.wait == Wait::done; }))
        fail(fmt::format("block {} of the cluster has ended, and its memory with it", block));
    reached_[block] = true;
}

void Block::arrive_in_cluster(std::size_t block, std::size_t offset) {
    maybe_yield();
    reach(block);
    check(barrier_at(at(block, offset)).arrive(current_, 0, clocks_));
}

void Block::cluster_barrier() {
    maybe_yield();
    pause(Wait::cluster);
}

void Block::wait_phase(std::size_t offset, unsigned parity) {
    maybe_yield();
    PhaseBarrier& barrier = barrier_at(at(offset));
    if (parity > 1) fail(fmt::format("parity {} of a phase, 0 or 1 are meant", parity));
    if (barrier.parity() == parity) {
        Thread& thread = threads_[current_];
        thread.barrier = &barrier;
        thread.parity = parity;
        pause(Wait::phase);
    }
    clocks_.acquire(current_, barrier.wait());
    forget_common_knowledge(current_ / WARP_SIZE);
}

void Block::named_barrier(int id, int threads, bool wait) {
    maybe_yield();
    hopper();
    if (id < 1 || id >= Barriers::NAMED)
        fail(fmt::format("named barrier {}: there are 1 … {}", id, Barriers::NAMED - 1));
    if (threads <= 0 || threads % 32 != 0 || static_cast<std::size_t>(threads) > block_threads_)
        fail(fmt::format("named barrier {} of {} threads: whole warps of the block are meant", id,
                         threads));
    NamedBarrier& barrier = hopper_->barriers.named(own_block(), id);
    const std::size_t w = current_ / WARP_SIZE;
    std::uint64_t generation = 0;
    const unsigned set = meet((wait ? NAMED_WAIT : NAMED_ARRIVE) + id, &threads, sizeof threads,
                              [&](Warp& warp, unsigned phase) {
                                  for (const auto& slot : warp.slots[phase])
                                      if (std::memcmp(slot, &threads, sizeof threads) != 0)
                                          fail(fmt::format(
                                              "lanes of a warp come to named barrier {} with "
                                              "different numbers of threads",
                                              id));
                                  clocks_.warp_barrier(w);
                                  forget_common_knowledge(w);
                                  generation = barrier.generation;
                                  check(barrier.arrive(id, w, threads, clocks_));
                                  for (auto& slot : warp.results[phase])
                                      std::memcpy(slot, &generation, sizeof generation);
                              });
    if (!wait) return;
    std::memcpy(&generation, warps_[w].results[set][current_ % WARP_SIZE], sizeof generation);
    if (barrier.generation == generation) {
        threads_[current_].named = id;
        threads_[current_].generation = generation;
        pause(Wait::named);
    }
    clocks_.acquire(current_, barrier.ended);
    forget_common_knowledge(w);
}

}  // namespace fa::executor
