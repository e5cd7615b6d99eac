#pragma once
/// @file
/// The names of common/hopper_language.h for the CPU executor. Asynchronous copies and products are
/// as late as the hardware may be, and what would hang there, or be wrong now and then, is a Fault.

#include <atomic>

#include "common/executor/hopper.h"
#include "common/executor/tensor_core_language.h"

namespace fa {
inline namespace FA_KERNEL_NAMESPACE {

/// What TMA knows of a tensor; executor::make_executor_map() makes one.
using TensorMap = executor::TensorMap;

/// More numbers of warp instructions.
enum HopperOperation { ELECT = 64, UNIFORM, FROM_LANE, STORE_MATRICES };

// ---- Delays
#ifdef FA_BARRIER_DELAYS

/// What the kernels are delayed by. Set while none runs.
inline BarrierDelay barrier_delay;
/// The chosen warp sleeps.
inline void sleep_if_chosen() {
    const executor::ThreadPosition& at = executor::position();
    const std::uint64_t thread = at.block_in_cluster * at.block_dim.count() + at.thread.x;
    if (static_cast<int>(thread / executor::WARP_SIZE) == barrier_delay.warp)
        executor::sleep(barrier_delay.nanoseconds);
}

#else

/// Nothing.
inline void sleep_if_chosen() {}

#endif

// ---- Barriers in shared memory

/// mbarrier.init.
inline void init_barrier(SharedAddress b, int arrivals) {
    executor::init_barrier(own_offset(b), arrivals);
}
/// Makes initialised barriers visible to copies.
inline void publish_barriers() {
    executor::publish_barriers();
}
/// mbarrier.arrive.
inline void arrive(SharedAddress b) {
    sleep_if_chosen();
    executor::arrive(own_offset(b), 0);
}
/// mbarrier.arrive.expect_tx.
inline void arrive_expecting(SharedAddress b, std::uint32_t bytes) {
    sleep_if_chosen();
    executor::arrive(own_offset(b), bytes);
}
/// mbarrier.try_wait.parity until it succeeds.
inline void wait_phase(SharedAddress b, unsigned parity) {
    sleep_if_chosen();
    executor::wait_phase(own_offset(b), parity);
    sleep_if_chosen();
}

// ---- Copies of boxes

/// cp.async.bulk.tensor, to shared memory.
inline void load_box(SharedAddress to, const TensorMap& map, SharedAddress barrier, int channel,
                     int token, int head, int batch) {
    executor::load_box({map, own_offset(to), {channel, token, head, batch}, own_offset(barrier)});
}
/// cp.async.bulk.tensor, to global memory.
inline void store_box(const TensorMap& map, SharedAddress from, int channel, int token, int head,
                      int batch) {
    executor::store_box({map, own_offset(from), {channel, token, head, batch}});
}
/// Ends a group of stores.
inline void commit_stores() {
    executor::commit_stores();
}
/// Until at most PENDING groups still read shared memory.
template <int PENDING>
void wait_stores_read() {
    executor::wait_stores_read(PENDING);
}
/// A hint.
inline void prefetch_map(const TensorMap&) {}
/// fence.proxy.async.
inline void publish_for_copies() {
    executor::publish_for_copies();
}

// ---- Clusters

/// %cluster_ctarank; 0 without a cluster.
inline int block_in_cluster() {
    return static_cast<int>(executor::position().block_in_cluster);
}
/// mapa.
inline SharedAddress address_in_block(SharedAddress address, int block) {
    return static_cast<SharedAddress>(block) * BLOCK_MEMORY + address % BLOCK_MEMORY;
}
/// mbarrier.arrive, at any block's barrier.
inline void arrive_in_cluster(SharedAddress b) {
    sleep_if_chosen();
    executor::arrive_in_cluster(b / BLOCK_MEMORY, b % BLOCK_MEMORY);
}
/// cp.async.bulk.tensor, to the same place in several blocks.
inline void load_box_for_cluster(SharedAddress to, const TensorMap& map, SharedAddress barrier,
                                 int channel, int token, int head, int batch,
                                 std::uint16_t blocks) {
    executor::load_box_for_cluster(
        {map, own_offset(to), {channel, token, head, batch}, own_offset(barrier)}, blocks);
}
/// st.async.
template <class U>
void send(SharedAddress to, const U& x, SharedAddress barrier) {
    static_assert(sizeof(U) == executor::Message::BYTES);
    if (to / BLOCK_MEMORY != barrier / BLOCK_MEMORY)
        executor::fail("what is sent counts for a barrier of the block that it is sent to");
    executor::send(to / BLOCK_MEMORY, to % BLOCK_MEMORY, &x, barrier % BLOCK_MEMORY);
}
/// barrier.cluster.
inline void cluster_barrier() {
    sleep_if_chosen();
    executor::cluster_barrier();
    sleep_if_chosen();
}

// ---- Roles

/// setmaxnreg.inc.
template <int N>
void increase_registers() {
    executor::change_registers(N, /*increase=*/true);
}
/// setmaxnreg.dec.
template <int N>
void decrease_registers() {
    executor::change_registers(N, /*increase=*/false);
}
/// bar.sync.
inline void named_barrier_wait(int id, int threads) {
    sleep_if_chosen();
    executor::named_barrier(id, threads, /*wait=*/true);
    sleep_if_chosen();
}
/// bar.arrive.
inline void named_barrier_arrive(int id, int threads) {
    sleep_if_chosen();
    executor::named_barrier(id, threads, /*wait=*/false);
}
/// elect.sync: lane 0.
inline bool one_lane() {
    executor::warp_exchange(ELECT, nullptr, 0);
    return threadIdx.x % executor::WARP_SIZE == 0;
}
/// x of lane 0.
inline int uniform(int x) {
    int result;
    std::memcpy(&result, executor::warp_exchange(UNIFORM, &x, sizeof x), sizeof result);
    return result;
}

// ---- Products

/// wgmma.fence.
inline void fence_products() {
    executor::fence_products();
}
/// wgmma.commit_group.
inline void commit_products() {
    executor::commit_products();
}
/// wgmma.wait_group.
template <int PENDING>
void wait_products() {
    executor::wait_products(PENDING);
}
/// Nothing: the compiler knows what wait_products() may change.
template <int N>
void pin(float (&)[N][4]) {}
/// Nothing.
template <int N>
void pin(std::uint32_t (&)[N][4]) {}

/// The low half of a matrix descriptor, as on the GPU: address and leading offset, in units of 16
/// bytes.
using Matrix = std::uint32_t;
inline constexpr Matrix DEEPER_BY_ROWS = 16 * 2 / 16, DEEPER_BY_COLUMNS = 16 * 128 / 16;

/// Rows of 128 bytes that run along the depth.
inline Matrix by_rows(SharedAddress address) {
    return own_offset(address) / 16 + (1u << 16);
}
/// Rows of 128 bytes that run along N.
inline Matrix by_columns(SharedAddress address, std::uint32_t box_bytes) {
    return own_offset(address) / 16 + (box_bytes / 16 << 16);
}

/// wgmma.mma_async.m64nNk16 of T (BFloat16 or Float16), accumulating fp32. The registers of D and
/// of A must live until the wait.
template <class T, int N, bool B_IS_ROWS>
struct Product {
    static_assert(N % 16 == 0 && N <= executor::MOST_N);

    /// D = A·B.
    static void multiply(float (&d)[N / 8][4], Matrix a, Matrix b) {
        executor::product(shape(/*add=*/false, /*a_in_registers=*/false), {&d[0][0], nullptr}, a,
                          b);
    }
    /// D += A·B.
    static void add(float (&d)[N / 8][4], Matrix a, Matrix b) {
        executor::product(shape(/*add=*/true, /*a_in_registers=*/false), {&d[0][0], nullptr}, a, b);
    }
    /// D += A·B, A from registers.
    static void add(float (&d)[N / 8][4], const std::uint32_t (&a)[4], Matrix b) {
        executor::product(shape(/*add=*/true, /*a_in_registers=*/true), {&d[0][0], &a[0]}, 0, b);
    }

  private:
    static constexpr executor::ProductShape shape(bool add, bool a_in_registers) {
        const bool is_half = dtype_of<T>() == DType::f16;
        static_assert(sizeof(T) == 2);
        return {is_half ? executor::ElementType::float16 : executor::ElementType::bfloat16, N,
                B_IS_ROWS, add, a_in_registers};
    }
};

// ---- Launches

/// Nothing: the executor runs one grid after the other.
inline void let_next_grid_begin() {}
/// Nothing.
inline void wait_for_grids_before() {}

// ---- Others

namespace detail {

/// What a lane brings to stmatrix.
struct StoredMatrixRow {
    std::uint32_t offset;
    std::uint32_t r[4];
};

/// stmatrix: the reverse of read_matrices<false>().
inline void write_matrices(const std::byte* operands, std::byte*) {
    std::byte* const shared = executor::shared_base();
    StoredMatrixRow lanes[executor::WARP_SIZE];
    for (unsigned lane = 0; lane < executor::WARP_SIZE; ++lane)
        std::memcpy(&lanes[lane], operands + executor::SLOT_BYTES * lane, sizeof lanes[lane]);
    for (unsigned lane = 0; lane < executor::WARP_SIZE; ++lane)
        for (unsigned m = 0; m < 4; ++m)
            std::memcpy(shared + lanes[8 * m + lane / 4].offset + 4 * (lane % 4), &lanes[lane].r[m],
                        4);
}

}  // namespace detail

/// stmatrix.
inline void store_matrices(SharedAddress row, const std::uint32_t (&r)[4]) {
    const std::uint32_t offset = own_offset(row);
    executor::note_shared(offset, 16, /*is_write=*/true);
    const detail::StoredMatrixRow own{offset, {r[0], r[1], r[2], r[3]}};
    executor::warp_compute(STORE_MATRICES, &own, sizeof own, detail::write_matrices);
}
/// x of another lane.
inline float from_lane(float x, int lane) {
    const std::byte* slots = executor::warp_exchange(FROM_LANE, &x, sizeof x);
    float result;
    std::memcpy(&result, slots + executor::SLOT_BYTES * static_cast<unsigned>(lane), sizeof result);
    return result;
}
/// a + b, rounded towards −∞.
inline float add_downwards(float a, float b) {
    const float sum = a + b, b_part = sum - a, a_part = sum - b_part;
    const float lost = (a - a_part) + (b - b_part);  // exactly (Knuth)
    return lost < 0.0f ? std::nextafter(sum, minus_infinity()) : sum;
}
/// atomicAdd. Blocks may run at the same time here, too.
inline int atomic_add(GlobalPointer<int> counter, int n) {
    return counter.fetch_add(n);
}
/// __threadfence().
inline void global_fence() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
}
/// Counts the threads' turns, nothing like clocks.
inline std::int64_t clock_cycles() {
    return executor::clock_cycles();
}

}  // namespace FA_KERNEL_NAMESPACE
}  // namespace fa

#ifdef FA_BARRIER_DELAYS
#undef __syncthreads
/// The same for the barrier of the block.
#define __syncthreads()                                                          \
    (::fa::sleep_if_chosen(), ::fa::executor::block_barrier(__FILE__, __LINE__), \
     ::fa::sleep_if_chosen())
#endif
