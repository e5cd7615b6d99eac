#pragma once
/// @file
/// The names of common/tensor_core_language.h for the CPU executor. Fragments are spread over the
/// lanes as on the GPU, so a kernel that mixes them up computes nonsense here, too. Products are
/// exact and added in fp32; tensor cores round the last bits of such sums in a way of their own.

#include <array>
#include <bit>

#include "common/executor/device_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// An address in shared memory. As on the GPU, its upper bits say which block of a cluster it is
/// in; the lower ones are the offset into that block's dynamic shared memory.
using SharedAddress = std::uint32_t;
inline constexpr SharedAddress BLOCK_MEMORY = 1u << 24;

/// The address `byte_offset` bytes from the start of dynamic shared memory.
inline SharedAddress shared_address(std::uint32_t byte_offset) {
    return executor::position().block_in_cluster * BLOCK_MEMORY + byte_offset;
}
/// The offset of an address in the running block's own memory.
inline std::uint32_t own_offset(SharedAddress address) {
    if (address / BLOCK_MEMORY != executor::position().block_in_cluster)
        executor::fail(fmt::format(
            "an address in the memory of block {} of the cluster, where only the own is reached",
            address / BLOCK_MEMORY));
    return address % BLOCK_MEMORY;
}

/// Reads 2, 4 or 16 bytes.
template <class U>
U load_shared(SharedAddress from) {
    const std::uint32_t offset = own_offset(from);
    executor::note_shared(offset, sizeof(U), /*is_write=*/false);
    U value;
    std::memcpy(static_cast<void*>(&value), executor::shared_base() + offset, sizeof(U));
    return value;
}

/// Writes 4 or 16 bytes.
template <class U>
void store_shared(SharedAddress to, const U& value) {
    const std::uint32_t offset = own_offset(to);
    executor::note_shared(offset, sizeof(U), /*is_write=*/true);
    std::memcpy(executor::shared_base() + offset, static_cast<const void*>(&value), sizeof(U));
}

/// cp.async. Arrives as late as it may (executor::copy_async()).
template <class T>
void copy_async(SharedAddress to, GlobalPointer<const T> from, int bytes) {
    Packed<T, 16 / sizeof(T)> data{};
    if (bytes != 0 && bytes != 16)
        executor::fail(fmt::format("asynchronous copy of {} bytes, 0 or 16 are meant", bytes));
    if (bytes == 16) data = load_packed<16 / sizeof(T)>(from);
    executor::copy_async(own_offset(to), &data);
}
/// Ends a group of copies.
inline void commit_copies() {
    executor::commit_copies();
}
/// Waits until at most PENDING groups are on their way.
template <int PENDING>
void wait_copies() {
    executor::wait_copies(PENDING);
}

/// Numbers that tell the warp instructions apart (shuffles use 0 … 31).
enum WarpOperation { LOAD_MATRICES = 32, LOAD_MATRICES_TRANSPOSED, MULTIPLY_ADD, VOTE };

namespace detail {

/// What a lane brings to ldmatrix: an offset.
using MatrixRow = std::uint32_t;
/// Four registers, one for each matrix.
using MatrixRegisters = std::array<std::uint32_t, 4>;

/// ldmatrix. Without transposition lane l gets elements 2q, 2q+1 of row g of each matrix, with it
/// the elements in column g of rows 2q, 2q+1 (g = l / 4, q = l % 4).
template <bool TRANSPOSED>
void read_matrices(const std::byte* operands, std::byte* results) {
    const std::byte* const shared = executor::shared_base();
    const auto element = [&](unsigned matrix, unsigned row, unsigned column) -> std::uint32_t {
        MatrixRow offset;
        std::memcpy(&offset, operands + executor::SLOT_BYTES * (8 * matrix + row), sizeof offset);
        std::uint16_t bits;
        std::memcpy(&bits, shared + offset + 2 * column, sizeof bits);
        return bits;
    };
    for (unsigned lane = 0; lane < executor::WARP_SIZE; ++lane) {
        const unsigned g = lane / 4, q = lane % 4;
        MatrixRegisters r;
        for (unsigned m = 0; m < 4; ++m)
            r[m] = TRANSPOSED ? element(m, 2 * q, g) | element(m, 2 * q + 1, g) << 16
                              : element(m, g, 2 * q) | element(m, g, 2 * q + 1) << 16;
        std::memcpy(results + executor::SLOT_BYTES * lane, &r, sizeof r);
    }
}

/// What a lane brings to mma.sync: its registers of A and B.
struct ProductOperands {
    std::uint32_t a[4], b[2];
};

/// The product A·B of mma.sync.m16n8k16, four elements for each lane.
template <class T>
void multiply(const std::byte* operands, std::byte* results) {
    const auto half = [](std::uint32_t pair, bool high) {
        return to_float(std::bit_cast<T>(static_cast<std::uint16_t>(high ? pair >> 16 : pair)));
    };
    float a[16][16], b[16][8];
    for (unsigned lane = 0; lane < executor::WARP_SIZE; ++lane) {
        const unsigned g = lane / 4, q = lane % 4;
        ProductOperands own;
        std::memcpy(&own, operands + executor::SLOT_BYTES * lane, sizeof own);
        for (unsigned e = 0; e < 2; ++e) {
            for (unsigned n = 0; n < 4; ++n)
                a[g + 8 * (n % 2)][2 * q + e + 8 * (n / 2)] = half(own.a[n], e == 1);
            for (unsigned n = 0; n < 2; ++n) b[2 * q + e + 8 * n][g] = half(own.b[n], e == 1);
        }
    }
    for (unsigned lane = 0; lane < executor::WARP_SIZE; ++lane) {
        const unsigned g = lane / 4, q = lane % 4;
        float c[4] = {};
        for (unsigned k = 0; k < 16; ++k)
            for (unsigned n = 0; n < 4; ++n) c[n] += a[g + 8 * (n / 2)][k] * b[k][2 * q + n % 2];
        std::memcpy(results + executor::SLOT_BYTES * lane, &c, sizeof c);
    }
}

/// Votes.
inline void any_of_lanes(const std::byte* operands, std::byte* results) {
    bool any = false;
    for (unsigned lane = 0; lane < executor::WARP_SIZE; ++lane)
        any |= operands[executor::SLOT_BYTES * lane] != std::byte{0};
    for (unsigned lane = 0; lane < executor::WARP_SIZE; ++lane)
        results[executor::SLOT_BYTES * lane] = std::byte{any};
}

/// The lane's part in ldmatrix.
template <bool TRANSPOSED>
void load_four_matrices(std::uint32_t (&r)[4], SharedAddress row, WarpOperation operation) {
    const MatrixRow offset = own_offset(row);
    executor::note_shared(offset, 16, /*is_write=*/false);
    const std::byte* const result =
        executor::warp_compute(operation, &offset, sizeof offset, read_matrices<TRANSPOSED>);
    std::memcpy(r, result, sizeof r);
}

}  // namespace detail

/// ldmatrix.
inline void load_matrices(std::uint32_t (&r)[4], SharedAddress row) {
    detail::load_four_matrices<false>(r, row, LOAD_MATRICES);
}
/// ldmatrix.trans.
inline void load_matrices_transposed(std::uint32_t (&r)[4], SharedAddress row) {
    detail::load_four_matrices<true>(r, row, LOAD_MATRICES_TRANSPOSED);
}

/// mma.sync.m16n8k16.
template <class T>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
    const detail::ProductOperands own{{a[0], a[1], a[2], a[3]}, {b0, b1}};
    float product[4];
    std::memcpy(product,
                executor::warp_compute(MULTIPLY_ADD, &own, sizeof own, detail::multiply<T>),
                sizeof product);
    for (int n = 0; n < 4; ++n) c[n] += product[n];
}

/// Two floats, rounded to T, in one register.
template <class T>
std::uint32_t pack(float low, float high) {
    return std::bit_cast<std::uint16_t>(from_float<T>(low)) |
           static_cast<std::uint32_t>(std::bit_cast<std::uint16_t>(from_float<T>(high))) << 16;
}

/// Whether any lane of the warp says so.
inline bool warp_any(bool x) {
    return *executor::warp_compute(VOTE, &x, sizeof x, detail::any_of_lanes) != std::byte{0};
}

/// The bits of a float.
inline int float_bits(float x) {
    return std::bit_cast<int>(x);
}
/// The float with these bits.
inline float float_from_bits(int x) {
    return std::bit_cast<float>(x);
}
/// The largest of three.
inline int maximum3(int a, int b, int c) {
    return max(max(a, b), c);
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa
