#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/aligned_buffer.h"
#include "tests/suite_case.h"
#include "tests/suite_checks.h"

namespace fa::suite {
namespace {

/// A call that is right in every respect, to be spoilt in one.
struct Call {
    AttentionProblem problem;
    AttentionTensors tensors;
    std::size_t workspace_less = 0;   ///< bytes the workspace is short of
    std::size_t workspace_phase = 0;  ///< bytes it is off its alignment
    int threads = 0;
};

/// What must be refused: what to spoil, and a word that the message must hold.
struct Wrong {
    std::string what, word;
    std::function<void(Call&)> spoil;
};

const std::vector<Wrong>& wrong_calls() {
    static const std::vector<Wrong> list{
        {"negative batch", "batch", [](Call& c) { c.problem.batch = -1; }},
        {"no query head", "heads_q", [](Call& c) { c.problem.heads_q = 0; }},
        {"no key head", "heads_kv", [](Call& c) { c.problem.heads_kv = 0; }},
        {"heads not a multiple", "multiple", [](Call& c) { c.problem.heads_q = 3; }},
        {"negative len_q", "len_q", [](Call& c) { c.problem.len_q = -5; }},
        {"negative len_kv", "len_kv", [](Call& c) { c.problem.len_kv = -5; }},
        {"no channel", "head_dim", [](Call& c) { c.problem.head_dim = 0; }},
        {"scale NaN", "scale", [](Call& c) { c.problem.scale = std::nanf(""); }},
        {"scale too large", "2^126", [](Call& c) { c.problem.scale = -0x1.1p126f; }},
        {"scale infinite", "scale", [](Call& c) { c.problem.scale = HUGE_VALF; }},
        {"too many elements", "2^62",
         [](Call& c) { c.problem.len_q = c.problem.len_kv = std::int64_t{1} << 40; }},
        {"a product that overflows before a zero", "2^62",
         [](Call& c) {
             c.problem.batch = c.problem.len_kv = std::int64_t{1} << 62;
             c.problem.len_q = 0;
         }},
        {"Q shorter", "Q", [](Call& c) { --c.tensors.q.shape.tokens; }},
        {"K longer", "K", [](Call& c) { ++c.tensors.k.shape.tokens; }},
        {"V with other heads", "V", [](Call& c) { ++c.tensors.v.shape.heads; }},
        {"O with another dim", "O", [](Call& c) { ++c.tensors.o.shape.dim; }},
        {"K of another type", "K",
         [](Call& c) {
             c.tensors.k.dtype = c.problem.dtype == DType::f32 ? DType::f16 : DType::f32;
         }},
        {"no Q", "Q", [](Call& c) { c.tensors.q.data = nullptr; }},
        {"no K", "K", [](Call& c) { c.tensors.k.data = nullptr; }},
        {"no V", "V", [](Call& c) { c.tensors.v.data = nullptr; }},
        {"no O", "O", [](Call& c) { c.tensors.o.data = nullptr; }},
        {"Q off its elements", "aligned",
         [](Call& c) { c.tensors.q.data = static_cast<const char*>(c.tensors.q.data) + 1; }},
        {"negative stride", "negative", [](Call& c) { c.tensors.k.strides.token = -64; }},
        {"O without strides", "overlaps", [](Call& c) { c.tensors.o.strides = {}; }},
        {"O rows that overlap", "overlaps", [](Call& c) { c.tensors.o.strides.token = 63; }},
        {"O heads that overlap", "overlaps", [](Call& c) { c.tensors.o.strides.head = 64; }},
        {"O rows absurdly far apart", "2^63",
         [](Call& c) { c.tensors.o.strides.batch = c.tensors.o.strides.token = INT64_MAX; }},
        {"LSE without strides", "overlaps", [](Call& c) { c.tensors.lse.stride_head = 0; }},
        {"negative threads", "threads", [](Call& c) { c.threads = -1; }},
        {"workspace a byte short", "workspace", [](Call& c) { c.workspace_less = 1; }},
        {"workspace off its alignment", "workspace", [](Call& c) { c.workspace_phase = 8; }},
    };
    return list;
}

}  // namespace

Failures check_door(const Implementation& implementation) {
    Failures failures;
    const DType dtype = dtypes_of(implementation).front();
    const AttentionProblem problem{.batch = 2,
                                   .heads_q = 4,
                                   .heads_kv = 2,
                                   .len_q = 6,
                                   .len_kv = 9,
                                   .head_dim = 64,
                                   .dtype = dtype};
    const Shape q_shape = problem.q_shape(), kv_shape = problem.kv_shape();
    // Largest of the three, twice over: nothing spoilt above may reach outside.
    const std::vector<float> in(idx(2 * q_shape.count()) + 4096, 1.0f);
    for (const Wrong& wrong : wrong_calls()) {
        std::vector<float> out(idx(q_shape.count()), 42.0f), lse(idx(2 * 4 * 6), 42.0f);
        Call call;
        call.problem = problem;
        call.tensors = {.q = {in.data(), dtype, q_shape, Strides::dense(q_shape)},
                        .k = {in.data(), dtype, kv_shape, Strides::dense(kv_shape)},
                        .v = {in.data(), dtype, kv_shape, Strides::dense(kv_shape)},
                        .o = {out.data(), dtype, q_shape, Strides::dense(q_shape)},
                        .lse = {lse.data(), 4 * 6, 6}};
        wrong.spoil(call);
        const Launch launch{.threads = call.threads};
        const std::size_t needed = implementation.workspace_bytes(problem, {});
        if (needed == 0 && wrong.word == "workspace") continue;  // nothing to be short of
        const AlignedBuffer workspace(needed + 64);
        std::string message;
        try {
            attention(implementation, call.problem, call.tensors,
                      workspace.bytes().subspan(call.workspace_phase, needed - call.workspace_less),
                      launch);
        } catch (const std::invalid_argument& error) {
            message = error.what();
        }
        const bool untouched =
            std::count(out.begin(), out.end(), 42.0f) == static_cast<std::ptrdiff_t>(out.size()) &&
            std::count(lse.begin(), lse.end(), 42.0f) == static_cast<std::ptrdiff_t>(lse.size());
        if (message.empty())
            failures.push_back(
                fmt::format("{}: {} is not refused", implementation.name, wrong.what));
        else if (message.find(wrong.word) == std::string::npos)
            failures.push_back(fmt::format("{}: {}: \"{}\" does not speak of {}",
                                           implementation.name, wrong.what, message, wrong.word));
        if (!untouched)
            failures.push_back(
                fmt::format("{}: {}: outputs touched", implementation.name, wrong.what));
    }
    return failures;
}

Failures check_refusals(const Implementation& implementation) {
    Failures failures;
    for (DType dtype : {DType::f32, DType::bf16, DType::f16})
        for (std::int64_t head_dim : {1, 2, 7, 64, 255, 256, 257, 320, 512, 1000})
            for (bool causal : {false, true}) {
                const SuiteCase c{.problem = {.heads_q = 2,
                                              .heads_kv = 2,
                                              .len_q = 20,
                                              .len_kv = 37,
                                              .head_dim = head_dim,
                                              .dtype = dtype,
                                              .causal = causal}};
                if (supports(implementation, c.problem)) {
                    check_case(failures, implementation, c);
                    continue;
                }
                const Shape shape = c.problem.q_shape(), kv = c.problem.kv_shape();
                const std::vector<float> in(idx(kv.count() + shape.count()), 1.0f);
                std::vector<float> out(idx(shape.count()), 42.0f);
                bool refused = false;
                try {
                    attention(implementation, c.problem,
                              {.q = {in.data(), dtype, shape, Strides::dense(shape)},
                               .k = {in.data(), dtype, kv, Strides::dense(kv)},
                               .v = {in.data(), dtype, kv, Strides::dense(kv)},
                               .o = {out.data(), dtype, shape, Strides::dense(shape)},
                               .lse = {}},
                              {});
                } catch (const Unsupported&) {
                    refused = true;
                }
                if (!refused || std::count(out.begin(), out.end(), 42.0f) !=
                                    static_cast<std::ptrdiff_t>(out.size()))
                    failures.push_back(
                        fmt::format("{}: {} is not supported, yet not refused untouched",
                                    implementation.name, describe(c)));
            }
    return failures;
}

}  // namespace fa::suite
