#include "common/executor/executor.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/executor/block.h"
#include "common/executor/hopper.h"

namespace fa::executor {
namespace {

/// The block, or cluster of blocks, that this OS thread is running.
thread_local Block* running = nullptr;

Block& current_block() {
    if (running == nullptr) throw std::logic_error("kernel code called outside executor::run()");
    return *running;
}

}  // namespace

Counters& Counters::operator+=(const Counters& other) {
    blocks += other.blocks;
    global_load_bytes += other.global_load_bytes;
    global_store_bytes += other.global_store_bytes;
    barriers += other.barriers;
    shared_instructions += other.shared_instructions;
    shared_wavefronts += other.shared_wavefronts;
    shared_ideal += other.shared_ideal;
    product_flop += other.product_flop;
    return *this;
}

Counters run(Dim3 grid, Dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel,
             const Options& options) {
    if (block.count() == 0 || block.count() > MAX_THREADS || block.count() % WARP_SIZE != 0)
        throw std::invalid_argument(
            fmt::format("executor: blocks of {} threads; 32, 64 … {} are possible", block.count(),
                        MAX_THREADS));
    if (options.cluster == 0 || options.cluster > MAX_CLUSTER || grid.x % options.cluster != 0)
        throw std::invalid_argument(fmt::format(
            "executor: a grid of {} blocks in x, in clusters of {}; 1 … {} are possible", grid.x,
            options.cluster, MAX_CLUSTER));
    const std::uint64_t blocks = grid.count(), clusters = blocks / options.cluster;
    const int offered = options.workers > 0 ? options.workers : omp_get_max_threads();
    const int workers = static_cast<int>(
        std::clamp<std::uint64_t>(clusters, 1, static_cast<std::uint64_t>(offered)));

    // All of them before any runs: what a launch holds does not depend on who comes first.
    std::vector<std::unique_ptr<Block>> states;
    for (int worker = 0; worker < workers; ++worker)
        states.push_back(std::make_unique<Block>(grid, block, shared_bytes, options));

    Counters total;
    std::exception_ptr error;
    std::atomic<bool> failed = false;
    std::mutex mutex;
    std::atomic<std::uint64_t> next = 0;
#pragma omp parallel num_threads(workers)
    {
        // No exception may leave the region: the first waits outside for the others to end.
        try {
            Block& state = *states[static_cast<std::size_t>(omp_get_thread_num())];
            Block* const outer = std::exchange(running, &state);
            try {
                for (std::uint64_t i; !failed && (i = next++) < clusters;) state.run(i, kernel);
            } catch (...) {
                running = outer;
                throw;
            }
            running = outer;
            const std::lock_guard lock(mutex);
            total += state.counters();
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
            failed = true;
        }
    }
    if (error) std::rethrow_exception(error);
    total.blocks = blocks;
    total.threads_per_block = block.count();
    total.shared_bytes_per_block = shared_bytes;
    return total;
}

const ThreadPosition& position() {
    return current_block().position();
}

void block_barrier(const char* file, int line) {
    current_block().barrier(file, line);
}

const std::byte* warp_exchange(int operation, const void* value, std::size_t size) {
    return current_block().exchange(operation, value, size);
}

const std::byte* warp_compute(int operation, const void* value, std::size_t size,
                              void (*compute)(const std::byte*, std::byte*)) {
    return current_block().exchange(operation, value, size, compute);
}

bool block_any(const char* file, int line, bool vote) {
    return current_block().any(file, line, vote);
}

void copy_async(std::size_t offset, const void* data) {
    current_block().copy_async(offset, data);
}
void commit_copies() {
    current_block().commit_copies();
}
void wait_copies(std::size_t pending) {
    current_block().wait_copies(pending);
}

std::byte* shared_base() {
    return current_block().shared_base();
}
std::size_t shared_size() {
    return current_block().shared_size();
}

void note_shared(std::size_t offset, std::size_t size, bool is_write) {
    current_block().note_shared(offset, size, is_write);
}

void note_global(std::size_t size, bool is_write) {
    current_block().note_global(size, is_write);
}

void init_barrier(std::size_t offset, int arrivals) {
    current_block().init_barrier(offset, arrivals);
}
void publish_barriers() {
    current_block().publish_barriers();
}
void arrive(std::size_t offset, std::uint32_t bytes) {
    current_block().arrive(offset, bytes);
}
void wait_phase(std::size_t offset, unsigned parity) {
    current_block().wait_phase(offset, parity);
}
void load_box(const BoxCopy& copy) {
    current_block().load_box(copy);
}
void store_box(const BoxCopy& copy) {
    current_block().store_box(copy);
}
void load_box_for_cluster(const BoxCopy& copy, unsigned blocks) {
    current_block().load_box_for_cluster(copy, blocks);
}
void arrive_in_cluster(std::size_t block, std::size_t offset) {
    current_block().arrive_in_cluster(block, offset);
}
void send(std::size_t block, std::size_t offset, const void* data, std::size_t barrier) {
    current_block().send(block, offset, data, barrier);
}
void cluster_barrier() {
    current_block().cluster_barrier();
}
void commit_stores() {
    current_block().commit_stores();
}
void wait_stores_read(std::size_t pending) {
    current_block().wait_stores_read(pending);
}
void publish_for_copies() {
    current_block().publish_for_copies();
}
void change_registers(int registers, bool increase) {
    current_block().change_registers(registers, increase);
}
void named_barrier(int id, int threads, bool wait) {
    current_block().named_barrier(id, threads, wait);
}
void product(const ProductShape& shape, const ProductRegisters& registers, std::uint32_t a,
             std::uint32_t b) {
    current_block().product(shape, registers, a, b);
}
void fence_products() {
    current_block().fence_products();
}
void commit_products() {
    current_block().commit_products();
}
void wait_products(std::size_t pending) {
    current_block().wait_products(pending);
}
std::int64_t clock_cycles() {
    return current_block().clock_cycles();
}
void sleep(std::int64_t turns) {
    current_block().sleep(turns);
}

void fail(const std::string& what) {
    const ThreadPosition& at = position();
    throw Fault(fmt::format("{} (block {},{},{}, thread {},{},{})", what, at.block.x, at.block.y,
                            at.block.z, at.thread.x, at.thread.y, at.thread.z));
}

}  // namespace fa::executor
