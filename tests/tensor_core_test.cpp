// Chapter 8's kernels on the executor, beyond the suite: every size and every switch of the last
// one, the order of threads and copies, banks, and what the host decides.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include "chapters/08_tensor_cores/ablation_kinds.h"
#include "chapters/08_tensor_cores/executor_entries.h"
#include "chapters/08_tensor_cores/growth.h"
#include "chapters/08_tensor_cores/ladder_host.h"
#include "chapters/08_tensor_cores/probe_results.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/reference_attention.h"

namespace fa {
namespace {

constexpr float NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

/// Calls `use.template operator()<Kernel, Config>(name)` for every kernel of the chapter: the
/// steps, all sizes of the last one, and it without each of its ideas.
template <class Use>
void for_each_kernel(Use&& use) {
    for_each_step([&]<class Step>(int, std::string_view name) {
        use.template operator()<LadderKernel<Step>, Step>(name);
    });
    use.template operator()<TensorCoreKernel, LongRows128>("d128, 32 rows");
    use.template operator()<TensorCoreKernel, ShortRows128>("d128, 16 rows");
    use.template operator()<TensorCoreKernel, Rows256>("d256");
    use.template operator()<TensorCoreKernel, AnyRows128>("d128, any rows");
    use.template operator()<TensorCoreKernel, AnyRows256>("d256, any rows");
    for_each_ablated([&]<class Config>(std::string_view name) {
        use.template operator()<TensorCoreKernel, Config>(name);
    });
}

template <class T>
void poison(AttentionData<T>& data) {
    std::fill(data.o.begin(), data.o.end(), T(NOT_A_NUMBER));
    std::fill(data.lse.begin(), data.lse.end(), NOT_A_NUMBER);
}

/// O and LSE against fp64, to what bf16 weights and outputs allow for standard-normal V.
template <class T>
void check_against_gold(const AttentionProblem& p, AttentionData<T>& data) {
    const ReferenceResult gold = reference_attention(p, data.tensors());
    double worst = 0, worst_lse = 0;
    for (std::size_t i = 0; i < gold.o.size(); ++i) {
        const auto value = static_cast<double>(static_cast<float>(data.o.data()[i]));
        if (std::isnan(gold.o[i]) && std::isnan(value)) continue;
        const double error = std::fabs(value - gold.o[i]);
        worst = larger_or_nan(worst, error);
    }
    for (std::size_t i = 0; i < gold.lse.size(); ++i) {
        const auto value = static_cast<double>(data.lse[i]);
        if (value == gold.lse[i] || (std::isnan(gold.lse[i]) && std::isnan(value))) continue;
        const double error = std::fabs(value - gold.lse[i]);
        worst_lse = larger_or_nan(worst_lse, error);
    }
    CHECK(worst <= 0.03);
    CHECK(worst_lse <= 2e-5);
}

TEST_CASE("tensor cores: every size and every switch computes attention") {
    for (const AttentionProblem& p : {
             AttentionProblem{.heads_q = 4,
            .heads_kv = 2,
            .len_q = 200,
            .len_kv = 200,
            .dtype = DType::bf16,
            .causal = true},
             AttentionProblem{
                 .len_q = 130, .len_kv = 261, .head_dim = 40, .dtype = DType::bf16, .causal = true},
             AttentionProblem{.len_q = 70, .len_kv = 33, .dtype = DType::bf16, .causal = true},
             AttentionProblem{
                 .batch = 2, .len_q = 17, .len_kv = 97, .dtype = DType::bf16, .scale = -0.3f},
         })
        for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
            CAPTURE(std::string(name));
            CAPTURE(describe(p));
            AttentionData<BFloat16> data(p, 1);
            poison(data);
            run_config_on_executor<Kernel, Config, BFloat16>(p, data.tensors(), {});
            check_against_gold(p, data);
        });
}

TEST_CASE("tensor cores: NaN in V stays with the rows that see it, in every kernel") {
    const AttentionProblem p{.len_q = 150, .len_kv = 150, .dtype = DType::bf16, .causal = true};
    for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
        CAPTURE(std::string(name));
        AttentionData<BFloat16> clean(p, 1), spoilt(p, 1);
        constexpr std::int64_t KEY = 77, CHANNEL = 13;
        spoilt.v.data()[KEY * 64 + CHANNEL] = BFloat16(NOT_A_NUMBER);
        run_config_on_executor<Kernel, Config, BFloat16>(p, clean.tensors(), {});
        run_config_on_executor<Kernel, Config, BFloat16>(p, spoilt.tensors(), {});
        int wrong = 0;
        for (std::int64_t i = 0; i < p.len_q; ++i)
            for (std::int64_t c = 0; c < 64; ++c) {
                const BFloat16 a = clean.o.data()[i * 64 + c], b = spoilt.o.data()[i * 64 + c];
                const bool sees = i >= KEY && c == CHANNEL;
                wrong += sees ? !std::isnan(static_cast<float>(b)) : a.bits != b.bits;
            }
        CHECK(wrong == 0);
    });
}

TEST_CASE(
    "tensor cores: equal scores of 2^32, times c off by 2^5 when rounded: all weigh the same") {
    const AttentionProblem p{.len_q = 3, .len_kv = 70, .dtype = DType::f16};
    AttentionData<Float16> data(p, 11);
    std::fill(data.q.begin(), data.q.end(), Float16(8192.0f));
    std::fill(data.k.begin(), data.k.end(), Float16(7984.0f));
    const ReferenceResult gold = reference_attention(p, data.tensors());
    for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
        CAPTURE(std::string(name));
        poison(data);
        run_config_on_executor<Kernel, Config, Float16>(p, data.tensors(), {});
        double worst = 0;
        for (std::size_t i = 0; i < gold.o.size(); ++i) {
            const auto value = static_cast<double>(static_cast<float>(data.o.data()[i]));
            const double error = std::fabs(value - gold.o[i]);
            worst = larger_or_nan(worst, error);
        }
        CHECK(worst <= 0.001);
    });
}

TEST_CASE("tensor cores: scores of any finite size, rising and falling") {
    // q = k = 2^e in one channel: scores up to 2^126, and c·m far beyond 2^31.
    const AttentionProblem p{
        .len_q = 128, .len_kv = 192, .dtype = DType::bf16, .scale = 1.0f, .causal = true};
    for (bool rising : {true, false}) {
        AttentionData<BFloat16> data(p, 1);
        std::fill(data.q.begin(), data.q.end(), BFloat16(0.0f));
        std::fill(data.k.begin(), data.k.end(), BFloat16(0.0f));
        for (std::int64_t i = 0; i < p.len_q; ++i)
            data.q.data()[i * 64] = BFloat16(std::ldexp(1.0f, static_cast<int>(i % 60)));
        for (std::int64_t j = 0; j < p.len_kv; ++j)
            data.k.data()[j * 64] =
                BFloat16(std::ldexp(1.0f, static_cast<int>((rising ? j : p.len_kv - 1 - j) / 3)));
        for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
            CAPTURE(std::string(name));
            poison(data);
            run_config_on_executor<Kernel, Config, BFloat16>(p, data.tensors(), {});
            int not_finite = 0;
            for (const BFloat16 o : data.o) not_finite += !std::isfinite(static_cast<float>(o));
            CHECK(not_finite == 0);
        });
    }
}

TEST_CASE("tensor cores: neither the order of the threads nor that of the copies changes a bit") {
    const AttentionProblem p{.heads_q = 2,
                             .heads_kv = 1,
                             .len_q = 150,
                             .len_kv = 200,
                             .dtype = DType::bf16,
                             .causal = true};
    for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
        CAPTURE(std::string(name));
        AttentionData<BFloat16> first(p, 1);
        run_config_on_executor<Kernel, Config, BFloat16>(p, first.tensors(), {});
        for (const executor::Options& options :
             {executor::Options{.reverse_order = true},
              executor::Options{.copies_arrive_at_once = true},
              executor::Options{.reverse_order = true, .copies_arrive_at_once = true}}) {
            AttentionData<BFloat16> other(p, 1);
            poison(other);
            run_config_on_executor<Kernel, Config, BFloat16>(p, other.tensors(), options);
            CHECK(std::memcmp(first.o.data(), other.o.data(), first.o.bytes()) == 0);
            CHECK(std::memcmp(first.lse.data(), other.lse.data(),
                              first.lse.size() * sizeof(float)) == 0);
        }
    });
}

TEST_CASE("tensor cores: swizzled tiles have no bank conflict at all, others have many") {
    const AttentionProblem p{.len_q = 192, .len_kv = 192, .dtype = DType::bf16, .causal = true};
    for_each_kernel([&]<class Kernel, class Config>(std::string_view name) {
        CAPTURE(std::string(name));
        AttentionData<BFloat16> data(p, 1);
        const executor::Counters c = run_config_on_executor<Kernel, Config, BFloat16>(
            p, data.tensors(), {.count_banks = true});
        CHECK(c.shared_instructions > 0);
        if (name == "mma" || name == "ldmatrix" || name == "no swizzle")
            CHECK(c.bank_conflicts() > c.shared_ideal);
        else
            CHECK(c.bank_conflicts() == 0);
    });
}

TEST_CASE("tensor cores: sections hold every block once, whatever their size") {
    for (const std::size_t l2_bytes :
         {std::size_t{1}, std::size_t{1} << 15, std::size_t{1} << 30}) {
        const AttentionProblem p{.batch = 3,
                                 .heads_q = 4,
                                 .heads_kv = 2,
                                 .len_q = 150,
                                 .len_kv = 150,
                                 .dtype = DType::bf16,
                                 .causal = true};
        AttentionData<BFloat16> data(p, 1), other(p, 1);
        const auto pointer = []<class U>(U* at, std::int64_t n) { return GlobalPointer<U>(at, n); };
        const auto a = arguments_for<BFloat16>(p, data.tensors(), l2_bytes, pointer);
        std::set<std::tuple<int, int, int>> seen;
        for (unsigned block = 0; block < 36; ++block) {
            const SectionPosition at(a, block, 64);
            CHECK(at.head_kv == at.head_q / 2);
            CHECK(at.first_q < 150);
            CHECK(seen.insert({at.batch, at.head_q, at.first_q}).second);
        }
        CHECK(seen.size() == 36);
        run_config_on_executor<TensorCoreKernel, ShortRows64, BFloat16>(p, data.tensors(), {});
        run_config_on_executor<TensorCoreKernel, ShortRows64, BFloat16>(p, other.tensors(), {},
                                                                        l2_bytes);
        CHECK(std::memcmp(data.o.data(), other.o.data(), data.o.bytes()) == 0);
    }
}

TEST_CASE("tensor cores: heads to a section") {
    const AttentionProblem p{.batch = 4,
                             .heads_q = 12,
                             .heads_kv = 12,
                             .len_q = 1024,
                             .len_kv = 1024,
                             .dtype = DType::bf16};
    // 256 KiB of K and V for each head: 12 MiB in all.
    CHECK(heads_of_section(p, 50 << 20) == 48);
    CHECK(heads_of_section(p, 12 << 20) == 24);  // two sections, in half of the cache each
    CHECK(heads_of_section(p, 1) == 1);
}

TEST_CASE("tensor cores: sizes follow the length, and refusals name the numbers") {
    AttentionProblem p{.batch = 4,
                       .heads_q = 12,
                       .heads_kv = 12,
                       .len_q = 512,
                       .len_kv = 512,
                       .dtype = DType::bf16};
    const auto block_m = [&](bool chunked) {
        int m = 0;
        TensorCoreKernel::with_config(p, chunked, 132, [&]<class Config>() {
            m = Config::BLOCK_M;
            CHECK(Config::CHUNKED == chunked);
            CHECK(Config::HEAD_DIM >= p.head_dim);
        });
        return m;
    };
    CHECK(block_m(true) == 64);
    p.len_q = 1000;
    CHECK(block_m(true) == 128);
    CHECK(block_m(false) == 64);
    CHECK(why_unsupported_by<TensorCoreKernel>(p, 132, 99 * 1024).empty());
    for (const std::int64_t head_dim : {16, 24, 128, 136, 256}) {
        p.head_dim = head_dim;
        block_m(true);
        block_m(false);
        CHECK(why_unsupported_by<TensorCoreKernel>(p, 132, 99 * 1024).empty());
    }
    CHECK(why_unsupported_by<TensorCoreKernel>(p, 132, 64 * 1024) ==
          "head_dim 256 needs 98304 bytes of shared memory per block, the device has 65536");
    p.head_dim = 264;
    CHECK(why_unsupported_by<TensorCoreKernel>(p, 132, 99 * 1024) ==
          "head_dim is 264, at most 256 is possible");
    p.head_dim = 64;
    p.dtype = DType::f32;
    CHECK(why_unsupported_by<TensorCoreKernel>(p, 132, 99 * 1024).find("fp32") !=
          std::string::npos);
    CHECK(capability_why_unsupported(75) == "compute capability 8.0 is needed, the GPU has 7.5");
    CHECK(capability_why_unsupported(80).empty());
}

TEST_CASE("tensor cores: the probe finds each element of a tile with one lane") {
    const WarpProbe probe = probe_on_executor();
    for (auto member : {&ProbeResults::a, &ProbeResults::k, &ProbeResults::v}) {
        std::set<int> places;
        for (const ProbeResults& lane : probe)
            for (const std::uint32_t pair : lane.*member)
                for (const std::uint32_t bits : {pair & 0xffff, pair >> 16})
                    places.insert(
                        static_cast<int>(from_float16_bits(static_cast<std::uint16_t>(bits))));
        CHECK(places.size() == 256);
    }
}

TEST_CASE("tensor cores: growth of maxima, counted by hand") {
    // One row over three tiles whose largest exponents are 1, 12 and 3, read from the last.
    const AttentionProblem p{
        .len_q = 1, .len_kv = 192, .head_dim = 1, .dtype = DType::f32, .scale = 0.69314718f};
    AttentionData<float> data(p, 1);
    *data.q.begin() = 1.0f;
    std::fill(data.k.begin(), data.k.end(), -20.0f);
    data.k.data()[5] = 1.0f;
    data.k.data()[70] = 12.0f;
    data.k.data()[191] = 3.0f;
    const Growth g = growth_of(p, data.tensors());
    CHECK(g.rows == 1);
    CHECK(g.pairs == 3);
    CHECK(g.classic_rescales == 2);
    CHECK(g.lazy_rescales == 2);
    CHECK(g.warp_tiles == 3);
    CHECK(g.warp_rescales == 2);
    CHECK(g.count.front() == 1);  // 12 to 1
    CHECK(g.count.back() == 1);   // 3 to 12
}

}  // namespace
}  // namespace fa
