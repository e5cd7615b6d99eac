// A block's copies of boxes, and messages to others of its cluster.

#include <fmt/format.h>

#include "common/executor/block.h"

namespace fa::executor {

void Block::load_box(const BoxCopy& copy) {
    load_box_for_cluster(copy, 1u << own_block());
}

void Block::load_box_for_cluster(const BoxCopy& copy, unsigned blocks) {
    maybe_yield();
    check(copy.problem(shared_bytes_));
    if (blocks == 0 || blocks >= 1u << this->blocks())
        fail(fmt::format("a box for blocks {:b} of a cluster of {}", blocks, this->blocks()));
    for (std::size_t block = 0; block < this->blocks(); ++block) {
        if ((blocks >> block & 1) == 0) continue;
        reach(block);
        BoxCopy own = copy;
        own.shared = at(block, copy.shared);
        own.barrier = at(block, copy.barrier);
        own.thread = current_;
        begin_load(own);
    }
}

void Block::send(std::size_t block, std::size_t offset, const void* data, std::size_t barrier) {
    maybe_yield();
    reach(block);
    if (offset % Message::BYTES != 0 || offset + Message::BYTES > shared_bytes_)
        fail(fmt::format("a message to bytes {}..{} of {} of shared memory, in units of {}", offset,
                         offset + Message::BYTES, shared_bytes_, Message::BYTES));
    Message message{{}, at(block, offset), at(block, barrier), current_};
    std::memcpy(message.data, data, Message::BYTES);
    begin_load(message);
}

/// From now on nobody may touch the place, which holds NaN.
void Block::begin_load(const Arrival& arrival) {
    Hopper& h = hopper();
    std::visit(
        [&](const auto& load) {
            if (!barrier_at(load.barrier).published)
                fail(fmt::format(
                    "a box is to arrive at the barrier at byte {}, which the thread that "
                    "initialised it has not published",
                    load.barrier));
            check(h.accesses.begin_copy(clocks_.known(current_), load.shared, load.bytes()));
            std::memset(memory() + load.shared, 0xff, load.bytes());
        },
        arrival);
    h.loads.push_back(arrival);
    if (options_.copies_arrive_at_once) deliver();
}

/// Lets one box or message arrive.
void Block::deliver() {
    Hopper& h = *hopper_;
    const std::size_t which = options_.shuffle != 0    ? random_() % h.loads.size()
                              : options_.reverse_order ? h.loads.size() - 1
                                                       : 0;
    const Arrival arrival = h.loads[which];
    h.loads.erase(h.loads.begin() + static_cast<std::ptrdiff_t>(which));
    std::visit(
        [&](const auto& load) {
            note_global(load.load(memory()), /*is_write=*/false);
            PhaseBarrier& barrier = *h.barriers.at(load.barrier);
            const std::size_t clock = clocks_.copies_to(barrier.number);
            const Time time = clocks_.now(clock);
            h.accesses.end_copy(load.shared, load.bytes(), clock, time);
            const Problem problem = barrier.complete(load.bytes(), clock, clocks_.tick(clock));
            if (problem.empty()) return;
            set_current(load.thread);
            fail(problem);
        },
        arrival);
}

void Block::store_box(const BoxCopy& box) {
    maybe_yield();
    Hopper& h = hopper();
    check(box.problem(shared_bytes_));
    check(box.store_problem());
    BoxCopy copy = box;
    copy.shared = at(box.shared);
    const std::uint32_t sequence = ++h.sequence;
    const std::size_t reader = h.accesses.stores_of(current_ / WARP_SIZE);
    for (std::size_t i = 0; i < copy.map.box_bytes(); i += 16)
        check(h.accesses.begin_read(reader, sequence, clocks_.known(current_), current_,
                                    copy.shared + i, h.publications));
    h.stores[current_].add({copy, sequence});
}

void Block::wait_stores_read(std::size_t pending) {
    Hopper& h = hopper();
    const std::size_t warp = current_ / WARP_SIZE, clock = clocks_.stores_of(warp);
    const Time time = clocks_.now(clock);
    bool any = false;
    h.stores[current_].wait(pending, [&](const BoxStores::Store& store) {
        note_global(store.copy.store(memory()), /*is_write=*/true);
        for (std::size_t i = 0; i < store.copy.map.box_bytes(); i += 16)
            h.accesses.end_read(h.accesses.stores_of(warp), store.sequence, store.copy.shared + i,
                                time);
        any = true;
    });
    if (any) clocks_.learn(current_, clock, clocks_.tick(clock));
}

void Block::publish_for_copies() {
    Hopper& h = hopper();
    h.publications[current_].push_back(clocks_.now(current_ / WARP_SIZE));
    h.barriers.publish(current_);
}

}  // namespace fa::executor
