// Chapter 4's fused kernels on the executor, beyond the suite: what they move, how often they meet
// at barriers, and that neither the order of the threads nor bank conflicts matter to them.

#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "chapters/04_cuda_tiled/fused_kinds.h"
#include "chapters/04_cuda_tiled/multiprocessor.h"
#include "common/attention_data.h"
#include "common/cost_model.h"

namespace fa {
namespace {

using T = BFloat16;

const AttentionProblem PROBLEMS[] = {
    {.heads_q = 2,
     .heads_kv = 2,
     .len_q = 200,
     .len_kv = 200,
     .dtype = DType::bf16,
     .causal = true},
    {.batch = 2, .heads_q = 4, .heads_kv = 1, .len_q = 65, .len_kv = 129, .dtype = DType::bf16},
    {.len_q = 130, .len_kv = 70, .head_dim = 40, .dtype = DType::bf16, .causal = true},
    {.len_q = 33, .len_kv = 100, .head_dim = 128, .dtype = DType::bf16, .causal = true},
    {.len_q = 40, .len_kv = 17, .head_dim = 256, .dtype = DType::bf16},
    {.len_q = 7, .len_kv = 0, .dtype = DType::bf16},
};

template <class Function>
void for_each_run(Function&& function) {
    for (const AttentionProblem& p : PROBLEMS)
        for_each_fused_kernel([&]<class Kernel>(std::string_view name) {
            CAPTURE(std::string(name));
            CAPTURE(describe(p));
            function.template operator()<Kernel>(p);
        });
}

TEST_CASE("tiled kernels: bytes moved are those of the cost model, and LSE") {
    for_each_run([]<class Kernel>(const AttentionProblem& p) {
        AttentionData<T> data(p, 1);
        const executor::Counters counted = run_on_executor<Kernel>(p, data.tensors(), {});
        const KernelResources r = sizes_of<Kernel>(p, EXECUTOR_SHARED_LIMIT);
        const double lse = 4.0 * static_cast<double>(p.batch * p.heads_q * p.len_q);
        CHECK(static_cast<double>(counted.global_load_bytes + counted.global_store_bytes) ==
              q_outer_cost(p, {r.block_m, r.block_n}).bytes + lse);
        CHECK(static_cast<std::int64_t>(counted.blocks) == r.blocks);
        CHECK(static_cast<std::int64_t>(counted.barriers) == 2 * tiles_of(p, r.block_m, r.block_n));

        AttentionTensors without_lse = data.tensors();
        without_lse.lse = {};
        CHECK(run_on_executor<Kernel>(p, without_lse, {}).global_store_bytes ==
              counted.global_store_bytes - static_cast<std::uint64_t>(lse));
    });
}

TEST_CASE("tiled kernels: the order of the threads changes no bit") {
    for_each_run([]<class Kernel>(const AttentionProblem& p) {
        AttentionData<T> forwards(p, 1), backwards(p, 1);
        run_on_executor<Kernel>(p, forwards.tensors(), {});
        run_on_executor<Kernel>(p, backwards.tensors(), {.reverse_order = true});
        CHECK(std::memcmp(forwards.o.data(), backwards.o.data(), forwards.o.bytes()) == 0);
        CHECK(std::memcmp(forwards.lse.data(), backwards.lse.data(),
                          forwards.lse.size() * sizeof(float)) == 0);
    });
}

TEST_CASE("tiled kernels: padded rows leave few bank conflicts, for every size of tile") {
    for (std::int64_t head_dim : {64, 128, 256}) {
        const AttentionProblem p{.len_q = 128,
                                 .len_kv = 128,
                                 .head_dim = head_dim,
                                 .dtype = DType::bf16,
                                 .causal = true};
        for_each_fused_kernel([&]<class Kernel>(std::string_view name) {
            CAPTURE(std::string(name));
            CAPTURE(head_dim);
            AttentionData<T> data(p, 1);
            const executor::Counters c =
                run_on_executor<Kernel>(p, data.tensors(), {.count_banks = true});
            CHECK(c.shared_instructions > 0);
            // The plain kernel fills its tiles a float at a time, four in a row by each lane.
            const double allowed = name == "tiled" ? 0.15 : 0.01;
            CHECK(static_cast<double>(c.bank_conflicts()) <=
                  allowed * static_cast<double>(c.shared_wavefronts));
        });
    }
}

TEST_CASE("tiled kernels: a stride for writing rows side by side") {
    for (int lanes : {1, 2, 4, 8, 16, 32})
        for (int columns : {16, 32, 48, 64, 100, 128}) {
            const int stride = padded_stride(columns, lanes);
            CHECK(stride >= columns);
            CHECK(stride < columns + 32);
            bool taken[32] = {};
            for (int row = 0; row < 32 / lanes; ++row)
                for (int lane = 0; lane < lanes; ++lane) {
                    bool& bank = taken[(row * stride + lane) % 32];
                    CHECK_FALSE(bank);
                    bank = true;
                }
        }
}

TEST_CASE("tiled kernels: B4 H12 T4096 in blocks of 64 queries are 3072 blocks") {
    const AttentionProblem p{.batch = 4,
                             .heads_q = 12,
                             .heads_kv = 12,
                             .len_q = 4096,
                             .len_kv = 4096,
                             .dtype = DType::bf16,
                             .causal = true};
    const KernelResources r = sizes_of<TiledKernel>(p, Multiprocessor::SHARED_BYTES_PER_BLOCK);
    CHECK(r.block_m == 64);
    CHECK(r.blocks == 3072);
}

TEST_CASE(
    "tiled kernels: tiles that fit the shared memory of the device, or a refusal with the bytes") {
    const AttentionProblem p{.len_q = 64, .len_kv = 64, .head_dim = 64, .dtype = DType::bf16};
    for_each_fused_kernel([&]<class Kernel>(std::string_view name) {
        CAPTURE(std::string(name));
        for (const std::size_t kib : {64u, 96u, 99u, 163u, 227u}) {
            const std::size_t limit = kib * 1024;
            const std::string reason = fused_why_unsupported<Kernel>(p, limit);
            if (reason.empty())
                CHECK(sizes_of<Kernel>(p, limit).shared_bytes <= limit);
            else
                CHECK(reason.find(std::to_string(limit)) != std::string::npos);
        }
        CHECK(
            fused_why_unsupported<Kernel>(p, 99 * 1024).empty());  // compute capability 8.6 … 12.0
        CHECK_FALSE(fused_why_unsupported<Kernel>(p, 16 * 1024).empty());
    });
}

TEST_CASE("tiled kernels: what they refuse, with the numbers") {
    const auto reason = [](const AttentionProblem& p) {
        return fused_why_unsupported<TiledKernel>(p, EXECUTOR_SHARED_LIMIT);
    };
    CHECK(reason({.len_q = 1, .len_kv = 1, .head_dim = 257}).find("257") != std::string::npos);
    CHECK_FALSE(reason({.len_q = std::int64_t{1} << 31, .len_kv = 1}).empty());
    CHECK(reason({.batch = 1 << 20, .heads_q = 1 << 12, .heads_kv = 1, .len_q = 1, .len_kv = 1})
              .find("4294967296") != std::string::npos);
    CHECK(reason({.batch = 70'000, .len_q = 1, .len_kv = 1}).empty());
}

}  // namespace
}  // namespace fa
