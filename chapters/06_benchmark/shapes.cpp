#include "chapters/06_benchmark/shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/program.h"

namespace fa {
namespace {

/// "12", or "12kv4" if key/value heads are fewer.
std::string heads(const AttentionProblem& p) {
    return p.heads_kv == p.heads_q ? fmt::format("H{}", p.heads_q)
                                   : fmt::format("H{}kv{}", p.heads_q, p.heads_kv);
}

std::vector<ShapeSet> gpu_sets() {
    const AttentionProblem d64{.batch = 4,
                               .heads_q = 12,
                               .heads_kv = 12,
                               .head_dim = 64,
                               .dtype = DType::bf16,
                               .causal = true};
    AttentionProblem full = d64, d128 = d64, d128_full = d64, fp16 = d64, fp32 = d64;
    full.causal = false;
    d128.heads_q = d128.heads_kv = 16;
    d128.head_dim = 128;
    d128_full = d128;
    d128_full.causal = false;
    fp16.dtype = DType::f16;
    fp32.dtype = DType::f32;
    return {{"causal", d64, {512, 1024, 2048, 4096, 8192, 16384}},
            {"full", full, {512, 1024, 2048, 4096, 8192, 16384}},
            {"d128", d128, {512, 1024, 2048, 4096, 8192, 16384}},
            {"d128_full", d128_full, {1024, 4096}},
            {"odd", d64, {1000}},
            {"odd_d128", d128, {1000}},
            {"fp16", fp16, {1024, 4096}},
            {"fp32", fp32, {1024, 4096}},
            {"short", d64, {16, 32, 64, 128, 256}}};
}

std::vector<ShapeSet> cpu_sets() {
    const AttentionProblem d64{.batch = 1,
                               .heads_q = 4,
                               .heads_kv = 4,
                               .head_dim = 64,
                               .dtype = DType::f32,
                               .causal = true};
    AttentionProblem full = d64, d128 = d64, bf16 = d64;
    full.causal = false;
    d128.head_dim = 128;
    bf16.dtype = DType::bf16;
    return {{"causal", d64, {128, 256, 512, 1024}},
            {"full", full, {256, 1024}},
            {"d128", d128, {256, 1024}},
            {"odd", d64, {1000}},
            {"bf16", bf16, {256, 1024}},
            {"short", d64, {8, 16, 32, 64}}};
}

}  // namespace

AttentionProblem ShapeSet::problem(std::int64_t length) const {
    AttentionProblem p = base;
    p.len_q = p.len_kv = length;
    return p;
}

std::string ShapeSet::title() const {
    return fmt::format("B{} {} d{} {} {}", base.batch, heads(base), base.head_dim,
                       name_of(base.dtype), base.causal ? "causal" : "full");
}

std::vector<ShapeSet> shape_sets(Device device) {
    return device == Device::cuda ? gpu_sets() : cpu_sets();
}

std::vector<ShapeSet> chosen_sets(const std::vector<ShapeSet>& all, const std::string& flag,
                                  const std::string& names) {
    const std::vector<std::string> wanted = split_at_commas(names);
    std::vector<std::string> known{"all"};
    for (const ShapeSet& set : all) known.push_back(set.name);
    for (const std::string& name : wanted)
        if (std::ranges::find(known, name) == known.end())
            throw UsageError(
                fmt::format("{}: \"{}\" is none of {}", flag, name, fmt::join(known, ", ")));
    if (std::ranges::find(wanted, "all") != wanted.end()) return all;
    std::vector<ShapeSet> chosen;
    for (const ShapeSet& set : all)
        if (std::ranges::find(wanted, set.name) != wanted.end()) chosen.push_back(set);
    return chosen;
}

std::string row_name(const Implementation& implementation, const AttentionProblem& p,
                     CacheState cache) {
    const std::string length = p.len_q == p.len_kv ? fmt::format("T{}", p.len_q)
                                                   : fmt::format("Tq{}/Tk{}", p.len_q, p.len_kv);
    return fmt::format("{}/B{}/{}/{}/d{}/{}/{}/{}", implementation.name, p.batch, heads(p), length,
                       p.head_dim, name_of(p.dtype), p.causal ? "causal" : "full", name_of(cache));
}

double visible_scores(const AttentionProblem& p) {
    double keys = 0;
    for (std::int64_t i = 0; i < p.len_q; ++i) keys += static_cast<double>(p.visible_keys(i));
    return keys * static_cast<double>(p.batch * p.heads_q);
}

}  // namespace fa
