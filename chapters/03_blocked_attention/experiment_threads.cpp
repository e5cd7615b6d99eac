#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/03_blocked_attention/experiments.h"
#include "chapters/03_blocked_attention/fast_attention.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/memory_meter.h"
#include "common/text_table.h"

namespace fa {
namespace {

const Implementation* const IMPLEMENTATIONS[] = {&CPU_BLOCKED_KV_OUTER, &CPU_BLOCKED, &CPU_FAST};

std::string kibibytes(double bytes) {
    return fmt::format("{:.1f}", bytes / 1024);
}

/// Scratch of one run as the heap sees it.
struct Measured {
    std::size_t peak = 0;           ///< bytes, workspace included
    std::uint64_t allocations = 0;  ///< within the call, workspace excluded
};

Measured measure(const Implementation& implementation, const AttentionProblem& p, int threads,
                 std::uint64_t seed) {
    AttentionData<float> data(p, seed);
    const Launch launch{.threads = threads};
    const auto run = [&](std::span<std::byte> workspace) {
        attention(implementation, p, data.tensors(), workspace, launch);
    };
    const std::size_t bytes = implementation.workspace_bytes(p, launch);
    run(AlignedBuffer(bytes).bytes());  // the OpenMP runtime makes its threads
    const MemoryMeter meter;
    const AlignedBuffer workspace(bytes);
    const std::uint64_t before = meter.allocations();
    run(workspace.bytes());
    return {.peak = meter.peak(), .allocations = meter.allocations() - before};
}

/// The tiles of one thread, as a formula and in bytes.
struct TileBytes {
    std::string formula;
    double bytes;
};

TileBytes formula_of(const Implementation& implementation, const AttentionProblem& p) {
    const auto d = static_cast<double>(p.head_dim), n = static_cast<double>(p.len_q);
    if (&implementation == &CPU_FAST) {
        const FastTile tile = fast_tile();
        return {fmt::format("4·({}·{} + 2·{}·d)", tile.block_kv, tile.block_q, tile.block_q),
                4.0 * tile.block_q * (tile.block_kv + 2 * d)};
    }
    const TileSize tiles;
    const auto q = static_cast<double>(tiles.q), kv = static_cast<double>(tiles.kv);
    const double held = 4 * (q * kv + 2 * q * d + 2 * kv * d + 2 * q);
    const std::string text =
        fmt::format("4·({0}·{1} + 2·{0}·d + 2·{1}·d + 2·{0})", tiles.q, tiles.kv);
    if (&implementation == &CPU_BLOCKED) return {text, held};
    return {text + " + 4·N·(d + 2)", held + 4 * n * (d + 2)};
}

void show_memory(Program& program, const Options& options) {
    print_heading("Scratch memory in KiB, by formula and measured, d = 64");
    if (!MemoryMeter::active()) {
        fmt::print("Not measured: this build cannot see its heap.\n");
        return;
    }
    TextTable table({"implementation", "N", "formula per thread", "formula", "1 thread",
                     fmt::format("{} threads", options.threads), "allocations inside",
                     "one S would be"});
    table.left(2);
    for (const Implementation* implementation : IMPLEMENTATIONS) {
        std::uint64_t allocations = 0;
        for (const std::int64_t length : {512, 2048}) {
            const AttentionProblem p{
                .heads_q = 2, .heads_kv = 2, .len_q = length, .len_kv = length, .causal = true};
            const TileBytes formula = formula_of(*implementation, p);
            const Measured one = measure(*implementation, p, 1, program.seed);
            const Measured all = measure(*implementation, p, options.threads, program.seed);
            table.add({std::string(implementation->name), fmt::format("{}", length),
                       formula.formula, kibibytes(formula.bytes),
                       kibibytes(static_cast<double>(one.peak)),
                       kibibytes(static_cast<double>(all.peak)), fmt::format("{}", one.allocations),
                       kibibytes(4.0 * static_cast<double>(length * length))});
            // The allocator rounds large blocks up to pages; the OpenMP runtime may add a little.
            constexpr double SLACK = 8192;
            program.checks.at_most(
                fmt::format("{} at N={}: scratch of one thread over its formula, "
                            "bytes",
                            implementation->name, length),
                static_cast<double>(one.peak) - formula.bytes, SLACK);
            if (length == 512)
                allocations = one.allocations;
            else
                program.checks.at_most(
                    fmt::format("{}: allocations at N=2048 over those at N=512",
                                implementation->name),
                    static_cast<double>(one.allocations) - static_cast<double>(allocations), 0);
        }
    }
    fmt::print("{}", table.str());
}

void show_same_bits(Program& program) {
    const std::vector<int> counts = {1, 2, 3, 8};
    const AttentionProblem p{.batch = 2,
                             .heads_q = 6,
                             .heads_kv = 3,
                             .len_q = 389,
                             .len_kv = 401,
                             .head_dim = 72,
                             .causal = true};
    for (const Implementation* implementation : IMPLEMENTATIONS) {
        std::vector<float> first;
        bool same = true;
        for (const int threads : counts) {
            AttentionData<float> data(p, program.seed);
            const Launch launch{.threads = threads};
            const AlignedBuffer workspace(implementation->workspace_bytes(p, launch));
            attention(*implementation, p, data.tensors(), workspace.bytes(), launch);
            std::vector<float> bits(data.o.begin(), data.o.end());
            bits.insert(bits.end(), data.lse.begin(), data.lse.end());
            if (first.empty()) first = bits;
            same = same && std::memcmp(bits.data(), first.data(), bits.size() * sizeof(float)) == 0;
        }
        program.checks.that(fmt::format("{}: O and LSE with {} threads", implementation->name,
                                        fmt::join(counts, ", ")),
                            "the same bits", same ? "the same bits" : "different", same);
    }
}

}  // namespace

void show_threads(Program& program, const Options& options) {
    show_memory(program, options);
    show_same_bits(program);
}

}  // namespace fa
