// What a block knows of Hopper: barriers in shared memory, copies of boxes, products by warpgroups.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/executor/block.h"

namespace fa::executor {
namespace {

/// Numbers that tell the warp instructions apart (common/executor/hopper_language.h has 64 … 99).
enum Operation {
    FENCE_PRODUCTS = 100,
    COMMIT_PRODUCTS,
    WAIT_PRODUCTS,                  // + pending groups
    NAMED_WAIT = 200,               // + number of the barrier
    NAMED_ARRIVE = 300,             // + number of the barrier
    INCREASE_REGISTERS = 1000,      // + registers
    DECREASE_REGISTERS = 2000,      // + registers
    PRODUCT = 10000                 // + code of its shape
};

}  // namespace

Block::Hopper& Block::hopper() {
    if (!hopper_) {
        clocks_.start_messages();
        hopper_.emplace(shared_bytes_, threads_.size(), clocks_, races_);
        hopper_->accesses.start_block(first_epoch_, hopper_->publications);
    }
    return *hopper_;
}

void Block::start_hopper() {
    clocks_.start_block();
    Hopper& h = *hopper_;
    h.barriers = {};
    h.roles.assign(warps_.size(), {});
    std::fill(h.publications.begin(), h.publications.end(), 0u);
    h.sequence = 0;
    h.accesses.start_block(first_epoch_, h.publications);
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
        const WarpRole &first = h.roles[warp / 4 * 4], &own = h.roles[warp];
        if (own.instructions != first.instructions || own.hash != first.hash)
            fail(fmt::format(
                "the warps of a warpgroup do not issue the same products and changes of registers: "
                "warp {} has issued {} such instructions, warp {} {}{}",
                warp / 4 * 4, first.instructions, warp, own.instructions,
                own.instructions == first.instructions ? ", others" : ""));
    }
    set_current(0);
    if (!h.loads.empty())
        fail(fmt::format(
            "the block ends while a box is on its way to byte {} of shared memory: nobody has "
            "waited for it",
            h.loads.front().shared));
    for (const auto& [offset, barrier] : h.barriers.phases())
        if (barrier.forgotten_copies())
            fail(fmt::format(
                "the block ends, and nobody has waited for the last box that arrives at the "
                "barrier at byte {}: it may still be on its way",
                offset));
}

/// An ordinary access to shared memory.
void Block::note_beside_async(std::size_t offset, std::size_t size, bool is_write) {
    Hopper& h = *hopper_;
    if (const PhaseBarrier* const barrier = h.barriers.within(offset, size))
        fail(fmt::format("ordinary access to the barrier at byte {} of shared memory",
                         barrier->offset));
    check(h.accesses.ordinary(current_, offset, size, is_write, h.publications[current_]));
}

// ---- Barriers

void Block::init_barrier(std::size_t offset, int arrivals) {
    if (offset % 8 != 0 || offset + 8 > shared_bytes_)
        fail(fmt::format("barrier at byte {} of {}: not a multiple of 8, or beyond the end", offset,
                         shared_bytes_));
    if (arrivals < 1 || arrivals >= 1 << 20)
        fail(fmt::format("barrier for {} arrivals", arrivals));
    if (hopper().barriers.at(offset) != nullptr)
        fail(fmt::format("the barrier at byte {} is initialised a second time", offset));
    note_race(offset, 8, /*is_write=*/true);
    hopper().barriers.init(offset, current_, arrivals, clocks_);
}

PhaseBarrier& Block::barrier_at(std::size_t offset) {
    PhaseBarrier* const barrier = hopper().barriers.at(offset);
    if (barrier == nullptr)
        fail(fmt::format("no barrier was initialised at byte {} of shared memory", offset));
    if (barrier->initialiser != current_ &&
        races_.would_race(clocks_.known(current_), offset, 8, /*is_write=*/false))
        fail(fmt::format("the barrier at byte {} is used with no barrier of the block between its "
                         "initialisation and this thread",
                         offset));
    return *barrier;
}

void Block::publish_barriers() {
    hopper().barriers.publish(current_);
}

void Block::arrive(std::size_t offset, std::uint32_t bytes) {
    maybe_yield();
    check(barrier_at(offset).arrive(current_, bytes, clocks_));
}

void Block::wait_phase(std::size_t offset, unsigned parity) {
    maybe_yield();
    PhaseBarrier& barrier = barrier_at(offset);
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
    if (threads <= 0 || threads % 32 != 0 || static_cast<std::size_t>(threads) > threads_.size())
        fail(fmt::format("named barrier {} of {} threads: whole warps of the block are meant", id,
                         threads));
    NamedBarrier& barrier = hopper_->barriers.named(id);
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

// ---- Copies of boxes

void Block::load_box(const BoxCopy& copy) {
    maybe_yield();
    Hopper& h = hopper();
    check(copy.problem(shared_bytes_));
    PhaseBarrier& barrier = barrier_at(copy.barrier);
    if (!barrier.published)
        fail(fmt::format("a box is to arrive at the barrier at byte {}, which the thread that "
                         "initialised it has not published",
                         copy.barrier));
    check(h.accesses.begin_copy(clocks_.known(current_), copy.shared, copy.map.box_bytes()));
    std::memset(shared_base() + copy.shared, 0xff, copy.map.box_bytes());
    h.loads.push_back(copy);
    if (options_.copies_arrive_at_once) deliver();
}

/// Lets one box arrive.
void Block::deliver() {
    Hopper& h = *hopper_;
    const std::size_t which = options_.shuffle != 0       ? random_() % h.loads.size()
                              : options_.reverse_order    ? h.loads.size() - 1
                                                          : 0;
    const BoxCopy copy = h.loads[which];
    h.loads.erase(h.loads.begin() + static_cast<std::ptrdiff_t>(which));
    note_global(copy.load(shared_base()), /*is_write=*/false);
    PhaseBarrier& barrier = *h.barriers.at(copy.barrier);
    const std::size_t clock = clocks_.copies_to(barrier.number);
    const Time time = clocks_.now(clock);
    h.accesses.end_copy(copy.shared, copy.map.box_bytes(), clock, time);
    check(barrier.complete(copy.map.box_bytes(), clock, clocks_.tick(clock)));
}

void Block::store_box(const BoxCopy& copy) {
    maybe_yield();
    Hopper& h = hopper();
    check(copy.problem(shared_bytes_));
    if (copy.map.written == nullptr) fail("a box is stored by a map that is for loads only");
    const std::uint32_t sequence = ++h.sequence;
    const std::size_t reader = h.accesses.stores_of(current_ / WARP_SIZE);
    for (std::size_t i = 0; i < copy.map.box_bytes(); i += 16)
        check(h.accesses.begin_read(reader, sequence, clocks_.known(current_), copy.shared + i,
                                    h.publications));
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
    ++h.publications[current_];
    h.barriers.publish(current_);
}

// ---- Products and registers

void Block::note_instruction(std::size_t warp, std::uint64_t what) {
    WarpRole& role = hopper().roles[warp];
    ++role.instructions;
    role.hash = (role.hash ^ what) * 0x9e3779b97f4a7c15u;
    role.hash ^= role.hash >> 32;
}

void Block::change_registers(int registers, bool increase) {
    if (registers < 24 || registers > 256 || registers % 8 != 0)
        fail(fmt::format("{} registers for each thread: 24, 32 … 256 are possible", registers));
    const int operation = (increase ? INCREASE_REGISTERS : DECREASE_REGISTERS) + registers;
    meet(operation, nullptr, 0, [&](Warp&, unsigned) {
        note_instruction(current_ / WARP_SIZE, static_cast<std::uint64_t>(operation));
    });
}

const Time* Block::common_knowledge(std::size_t warp) {
    Knowledge& common = hopper_->roles[warp].common;
    if (common.empty()) common = clocks_.common(warp);
    common[warp] = clocks_.now(warp) + 1;  // the instruction comes after what the lanes did
    return common.data();
}

/// Calls f(offset) for every 16 bytes of shared memory that one warp's part of a product reads.
template <class F>
void Block::for_each_operand_chunk(const ProductShape& shape, std::uint32_t a, std::uint32_t b,
                                   std::size_t, F&& f) {
    const auto chunk = [&](std::size_t, std::size_t, std::size_t offset) { f(offset); };
    if (!shape.a_in_registers) for_each_chunk(MatrixPlace(a), true, 16, chunk);
    for_each_chunk(MatrixPlace(b), !shape.b_is_rows, shape.n, chunk);
}

void Block::product(const ProductShape& shape, const ProductRegisters& registers, std::uint32_t a,
                    std::uint32_t b) {
    Hopper& h = hopper();
    struct Lane {
        ProductRegisters registers;
        std::uint32_t a, b;
    };
    static_assert(sizeof(Lane) <= SLOT_BYTES);
    const Lane own{registers, a, b};
    meet(PRODUCT + shape.code(), &own, sizeof own, [&](Warp& warp, unsigned set) {
        const std::size_t w = current_ / WARP_SIZE;
        WarpRole& role = h.roles[w];
        ProductOperands32 operands;
        for (std::size_t lane = 0; lane < WARP_SIZE; ++lane) {
            Lane brought;
            std::memcpy(&brought, warp.slots[set][lane], sizeof brought);
            if (brought.a != a || brought.b != b)
                fail("lanes of a warp issue a product of different matrices");
            operands.lane[lane] = brought.registers;
        }
        if (!role.fenced)
            fail(
                "a product without fence_products() since the warp's registers could last have "
                "been written");
        note_instruction(w, (static_cast<std::uint64_t>(a) << 32 | b) ^
                                static_cast<std::uint64_t>(shape.code()) << 16);
        if (!shape.a_in_registers) check(MatrixPlace(a).problem(/*by_rows=*/true, 64));
        check(MatrixPlace(b).problem(!shape.b_is_rows, shape.n));
        // Each warp multiplies 16 of the 64 rows of A.
        operands.a = a + static_cast<std::uint32_t>(w % 4 * 16 * 128 / 16);
        operands.b = b;
        const std::uint32_t sequence = ++h.sequence;
        const Time* const known = common_knowledge(w);
        for_each_operand_chunk(shape, operands.a, b, w, [&](std::size_t offset) {
            if (offset + 16 > shared_bytes_)
                fail(fmt::format("a product reads byte {} of {} of shared memory", offset,
                                 shared_bytes_));
            check(h.accesses.begin_read(h.accesses.products_of(w), sequence, known, offset,
                                        h.publications));
        });
        check(role.products.issue(shape, operands, sequence));
    });
}

void Block::fence_products() {
    meet(FENCE_PRODUCTS, nullptr, 0,
         [&](Warp&, unsigned) { hopper().roles[current_ / WARP_SIZE].fenced = true; });
}

void Block::commit_products() {
    meet(COMMIT_PRODUCTS, nullptr, 0, [&](Warp&, unsigned) {
        hopper().roles[current_ / WARP_SIZE].products.commit();
        note_instruction(current_ / WARP_SIZE, COMMIT_PRODUCTS);
    });
}

void Block::wait_products(std::size_t pending) {
    maybe_yield();
    meet(WAIT_PRODUCTS + static_cast<int>(pending), nullptr, 0, [&](Warp&, unsigned) {
        Hopper& h = hopper();
        const std::size_t w = current_ / WARP_SIZE, clock = clocks_.products_of(w);
        const Time time = clocks_.now(clock);
        note_instruction(w, WAIT_PRODUCTS + pending);
        check(h.roles[w].products.wait(
            pending, shared_base(), [&](const WarpProducts::Product& product) {
                for_each_operand_chunk(product.shape, product.operands.a, product.operands.b, w,
                                       [&](std::size_t offset) {
                                           h.accesses.end_read(h.accesses.products_of(w),
                                                               product.sequence, offset, time);
                                       });
            }));
        h.roles[w].fenced = false;
        const Time passed = clocks_.tick(clock);
        for (std::size_t lane = 0; lane < WARP_SIZE; ++lane)
            clocks_.learn(w * WARP_SIZE + lane, clock, passed);
    });
}

}  // namespace fa::executor
