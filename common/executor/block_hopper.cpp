// What a block keeps for Hopper's instructions: its beginning and its end.

#include <fmt/format.h>

#include <algorithm>

#include "common/executor/block.h"

namespace fa::executor {

Block::Hopper& Block::hopper() {
    if (!hopper_) {
        clocks_.start_messages();
        hopper_.emplace(blocks(), blocks() * block_bytes_, threads_.size(), clocks_, races_);
        hopper_->accesses.adopt_writes(first_epoch_);
    }
    return *hopper_;
}

void Block::start_hopper() {
    clocks_.start_block();
    Hopper& h = *hopper_;
    h.barriers = Barriers(blocks());
    h.roles.assign(warps_.size(), {});
    for (std::vector<Time>& times : h.publications) times.clear();
    h.sequence = 0;
    h.accesses.start_block();
}

void Block::end_hopper() {
    Hopper& h = *hopper_;
    for (std::size_t thread = 0; thread < threads_.size(); ++thread)
        if (!h.stores[thread].empty()) {
            set_current(thread);
            fail(fmt::format(
                "the thread ends while a store of the box at byte {} of shared memory may still "
                "read it: wait_stores_read<0>() is missing",
                h.stores[thread].front().copy.shared));
        }
    for (std::size_t warp = 0; warp < warps_.size(); ++warp) {
        set_current(warp * WARP_SIZE);
        if (!h.roles[warp].products.empty())
            fail("the warp ends with products on their way: wait_products<0>() is missing");
        const std::size_t first_warp = warp - warp_in_block(warp) % 4;
        const WarpRole &first = h.roles[first_warp], &own = h.roles[warp];
        if (own.instructions != first.instructions || own.hash != first.hash)
            fail(fmt::format(
                "the warps of a warpgroup do not issue the same products and changes of registers: "
                "warp {} has issued {} such instructions, warp {} {}{}",
                first_warp, first.instructions, warp, own.instructions,
                own.instructions == first.instructions ? ", others" : ""));
    }
    for (std::size_t block = 0; block < blocks(); ++block) {
        set_current(block * block_threads_);
        for (int id = 1; id < Barriers::NAMED; ++id)
            if (const NamedBarrier& barrier = h.barriers.named(block, id); barrier.arrived != 0)
                fail(fmt::format("the block ends with {} of {} threads at named barrier {}",
                                 barrier.arrived, barrier.threads, id));
        if (reached_[block])
            fail(
                "the block may end while another of its cluster still reaches its memory: "
                "cluster_barrier() is missing between the two");
    }
    set_current(0);
    if (!h.loads.empty())
        fail(fmt::format(
            "the block ends while {} is on its way to byte {} of shared memory: nobody has "
            "waited for it",
            std::holds_alternative<BoxCopy>(h.loads.front()) ? "a box" : "a message",
            std::visit([](const auto& arrival) { return arrival.shared; }, h.loads.front())));
    for (const auto& [offset, barrier] : h.barriers.phases())
        if (barrier.forgotten_copies())
            fail(fmt::format(
                "the block ends, and nobody has waited for the last box that arrives at the "
                "barrier at byte {}: it may still be on its way",
                offset));
}

/// An ordinary access to shared memory.
void Block::note_beside_async(std::size_t place, std::size_t size, bool is_write) {
    Hopper& h = *hopper_;
    if (const PhaseBarrier* const barrier = h.barriers.within(place, size))
        fail(fmt::format("ordinary access to the barrier at byte {} of shared memory",
                         barrier->offset));
    check(h.accesses.ordinary(current_, place, size, is_write, h.publications[current_].size()));
}

}  // namespace fa::executor
