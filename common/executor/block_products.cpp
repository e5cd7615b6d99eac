// A block's products by warpgroups.

#include <fmt/format.h>

#include "common/executor/block.h"

namespace fa::executor {
namespace {

/// Calls f(offset) for every 16 bytes of shared memory that one warp's part of a product reads.
template <class F>
void for_each_operand_chunk(const ProductShape& shape, const ProductOperands& operands, F&& f) {
    const auto chunk = [&](std::size_t, std::size_t, std::size_t offset) { f(offset); };
    if (!shape.a_in_registers) for_each_chunk(MatrixPlace(operands.a), true, 16, chunk);
    for_each_chunk(MatrixPlace(operands.b), !shape.b_is_rows, shape.n, chunk);
}

}  // namespace

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
        ProductOperands operands;
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
        counters_.product_flop += 2u * 16 * 16 * static_cast<unsigned>(shape.n);  // a warp's rows
        if (!shape.a_in_registers) check(MatrixPlace(a).problem(/*by_rows=*/true, 64));
        check(MatrixPlace(b).problem(!shape.b_is_rows, shape.n));
        // Each warp multiplies 16 of the 64 rows of A.
        operands.a = a + static_cast<std::uint32_t>(warp_in_block(w) % 4 * 16 * 128 / 16);
        operands.b = b;
        const std::uint32_t sequence = ++h.sequence;
        const Time* const known = common_knowledge(w);
        for_each_operand_chunk(shape, operands, [&](std::size_t offset) {
            if (offset + 16 > shared_bytes_)
                fail(fmt::format("a product reads byte {} of {} of shared memory", offset,
                                 shared_bytes_));
            check(h.accesses.begin_read(h.accesses.products_of(w), sequence, known,
                                        RaceDetector::NOBODY, at(offset), h.publications));
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
                for_each_operand_chunk(product.shape, product.operands, [&](std::size_t offset) {
                    h.accesses.end_read(h.accesses.products_of(w), product.sequence, at(offset),
                                        time);
                });
            }));
        h.roles[w].fenced = false;
        const Time passed = clocks_.tick(clock);
        for (std::size_t lane = 0; lane < WARP_SIZE; ++lane)
            clocks_.learn(w * WARP_SIZE + lane, clock, passed);
    });
}

}  // namespace fa::executor
