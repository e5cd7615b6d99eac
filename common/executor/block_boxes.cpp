// A block's copies of boxes.

#include <fmt/format.h>

#include "common/executor/block.h"

namespace fa::executor {

void Block::load_box(const BoxCopy& copy) {
    maybe_yield();
    Hopper& h = hopper();
    check(copy.problem(shared_bytes_));
    PhaseBarrier& barrier = barrier_at(copy.barrier);
    if (!barrier.published)
        fail(
            fmt::format("a box is to arrive at the barrier at byte {}, which the thread that "
                        "initialised it has not published",
                        copy.barrier));
    check(h.accesses.begin_copy(clocks_.known(current_), copy.shared, copy.map.box_bytes()));
    std::memset(shared_base() + copy.shared, 0xff, copy.map.box_bytes());
    h.loads.push_back(copy);
    h.loads.back().thread = current_;
    if (options_.copies_arrive_at_once) deliver();
}

/// Lets one box arrive.
void Block::deliver() {
    Hopper& h = *hopper_;
    const std::size_t which = options_.shuffle != 0    ? random_() % h.loads.size()
                              : options_.reverse_order ? h.loads.size() - 1
                                                       : 0;
    const BoxCopy copy = h.loads[which];
    h.loads.erase(h.loads.begin() + static_cast<std::ptrdiff_t>(which));
    note_global(copy.load(shared_base()), /*is_write=*/false);
    PhaseBarrier& barrier = *h.barriers.at(copy.barrier);
    const std::size_t clock = clocks_.copies_to(barrier.number);
    const Time time = clocks_.now(clock);
    h.accesses.end_copy(copy.shared, copy.map.box_bytes(), clock, time);
    const Problem problem = barrier.complete(copy.map.box_bytes(), clock, clocks_.tick(clock));
    if (problem.empty()) return;
    set_current(copy.thread);
    fail(problem);
}

void Block::store_box(const BoxCopy& copy) {
    maybe_yield();
    Hopper& h = hopper();
    check(copy.problem(shared_bytes_));
    check(copy.store_problem());
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
        note_global(store.copy.store(shared_base()), /*is_write=*/true);
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
