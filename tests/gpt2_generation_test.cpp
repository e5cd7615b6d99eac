/// @file
/// Text continued: cached keys and values against the whole text in one pass, and the choice of
/// tokens.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "chapters/07_gpt2_124m/cross_entropy.h"
#include "chapters/07_gpt2_124m/generation.h"
#include "chapters/implementations.h"
#include "tests/gpt2_files.h"
#include "tests/refusal.h"
#include "tests/temporary_directory.h"

using namespace fa;
using namespace fa::testing;

namespace {

Gpt2 small_gpt2() {
    const TemporaryDirectory directory;
    small_model().write(directory.path());
    return read_gpt2(directory.path());
}

const std::vector<std::int32_t> TEXT{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4};

ForwardOptions with(const Implementation& implementation, DType activations) {
    ForwardOptions options;
    options.attention = &implementation;
    options.activations = activations;
    return options;
}

/// Greedy without a cache: the whole text goes through the network for each token.
std::vector<std::int32_t> recompute(const Gpt2& model, const ForwardOptions& options,
                                    std::vector<std::int32_t> text, std::size_t count) {
    std::vector<std::int32_t> added;
    std::vector<float> next(static_cast<std::size_t>(model.config.vocabulary));
    for (std::size_t i = 0; i < count; ++i) {
        Forward forward(model, options, 1, static_cast<std::int64_t>(text.size()));
        logits(model, forward.run(text).last(30), {.activations = options.activations}, next);
        added.push_back(
            static_cast<std::int32_t>(std::max_element(next.begin(), next.end()) - next.begin()));
        text.push_back(added.back());
    }
    return added;
}

}  // namespace

TEST_CASE("hidden states with a cache are those without") {
    const Gpt2 model = small_gpt2();
    for (const Implementation& implementation : all_implementations()) {
        if (implementation.device != Device::cpu) continue;
        for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
            CAPTURE(implementation.name);
            CAPTURE(name_of(dtype));
            const ForwardOptions options = with(implementation, dtype);
            Forward whole(model, options, 1, 20),
                cached(model, options, 1, 20, Forward::Cache::keep);
            const std::span<const float> want = whole.run(TEXT);
            // 16-bit results may fall on the other side of a rounding when sums change their order.
            const double bound = dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 0.02 : 0.15;
            std::size_t done = 0;
            for (const std::size_t piece : std::vector<std::size_t>{7, 1, 1, 5, 1, 2, 3}) {
                const std::span<const std::int32_t> tokens = std::span(TEXT).subspan(done, piece);
                const std::span<const float> got = cached.run(tokens);
                for (std::size_t i = 0; i < got.size(); ++i)
                    CHECK(std::abs(double{got[i]} - double{want[done * 30 + i]}) <= bound);
                done += piece;
                CHECK(cached.past() == static_cast<std::int64_t>(done));
            }
            CHECK(one_line(refusal([&] { cached.run(std::vector<std::int32_t>{1}); })));
        }
    }
}

TEST_CASE("greedy text is that of full recomputation") {
    const Gpt2 model = small_gpt2();
    for (const Implementation& implementation : all_implementations()) {
        if (implementation.device != Device::cpu) continue;
        CAPTURE(implementation.name);
        const ForwardOptions options = with(implementation, DType::f32);
        CHECK(generate(model, options, std::span(TEXT).first(6), 30) ==
              recompute(model, options, {TEXT.begin(), TEXT.begin() + 6}, 30));
    }
}

TEST_CASE("sampling: seeds, temperature and top-k") {
    const Gpt2 model = small_gpt2();
    const ForwardOptions options = with(implementation_named("cpu_naive"), DType::f32);
    const std::span<const std::int32_t> prompt = std::span(TEXT).first(4);
    const auto sample = [&](const Sampling& sampling, std::int64_t count = 30) {
        return generate(model, options, prompt, count, sampling);
    };
    const std::vector<std::int32_t> greedy = sample({});
    CHECK(sample({.temperature = 1, .seed = 5}) == sample({.temperature = 1, .seed = 5}));
    CHECK(sample({.temperature = 1, .seed = 5}) != sample({.temperature = 1, .seed = 6}));
    CHECK(sample({.temperature = 1, .top_k = 1, .seed = 5}) == greedy);
    CHECK(sample({.temperature = 1e-9, .seed = 5}) == greedy);
    CHECK(sample({.temperature = 1, .top_k = 1000, .seed = 5}) ==
          sample({.temperature = 1, .seed = 5}));

    // The first token's frequencies are its probabilities, among the three likeliest of the logits.
    std::vector<float> next(53);
    Forward forward(model, options, 1, 4);
    logits(model, forward.run(prompt).last(30), {}, next);
    std::vector<std::int32_t> order(53);
    for (std::int32_t i = 0; i < 53; ++i) order[static_cast<std::size_t>(i)] = i;
    const auto logit = [&](std::int32_t id) { return double{next[static_cast<std::size_t>(id)]}; };
    std::ranges::sort(order, [&](auto a, auto b) { return logit(a) > logit(b); });
    constexpr int DRAWS = 2000;
    std::map<std::int32_t, int> drawn;
    for (std::uint64_t seed = 0; seed < DRAWS; ++seed)
        ++drawn[sample({.temperature = 2, .top_k = 3, .seed = seed}, 1).front()];
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += std::exp(logit(order[i]) / 2);
    int counted = 0;
    for (std::size_t i = 0; i < 3; ++i) {
        const double p = std::exp(logit(order[i]) / 2) / sum;
        const double deviation = std::sqrt(p * (1 - p) / DRAWS);
        CHECK(std::abs(drawn[order[i]] / double{DRAWS} - p) <= 4 * deviation);
        counted += drawn[order[i]];
    }
    CHECK(counted == DRAWS);
}

TEST_CASE("generation refuses what does not fit") {
    const Gpt2 model = small_gpt2();
    const ForwardOptions options = with(implementation_named("cpu_naive"), DType::f32);
    CHECK(generate(model, options, TEXT, 0).empty());
    CHECK(generate(model, options, TEXT, 20).size() == 20);  // 40 in all: the context
    CHECK(refusal([&] { generate(model, options, TEXT, 21); }).find("40") != std::string::npos);
    CHECK(one_line(refusal(
        [&] { generate(model, options, TEXT, std::numeric_limits<std::int64_t>::max()); })));
    CHECK(one_line(refusal([&] { generate(model, options, {}, 1); })));
    CHECK(one_line(refusal([&] { generate(model, options, TEXT, -1); })));
    CHECK(one_line(refusal([&] { generate(model, options, TEXT, 1, {.temperature = -1}); })));
    CHECK(one_line(refusal([&] { generate(model, options, TEXT, 1, {.temperature = NAN}); })));
    CHECK(one_line(refusal([&] { generate(model, options, TEXT, 1, {.top_k = -1}); })));
    CHECK(one_line(refusal([&] { generate(model, options, std::vector<std::int32_t>{99}, 1); })));
}
