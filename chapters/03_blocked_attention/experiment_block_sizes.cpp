#include <fmt/format.h>

#include <string>
#include <vector>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/03_blocked_attention/experiments.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/stopwatch.h"
#include "common/text_table.h"

namespace fa {

void show_block_sizes(Program& program) {
#if defined(NDEBUG) && !defined(FA_SANITIZED)
    constexpr std::int64_t LENGTH = 1024;
#else
    constexpr std::int64_t LENGTH = 128;
#endif
    const AttentionProblem p{
        .heads_q = 4, .heads_kv = 4, .len_q = LENGTH, .len_kv = LENGTH, .causal = true};
    AttentionData<float> data(p, program.seed);
    print_heading(
        fmt::format("Block sizes of the Eigen version, Q outside, measured: GFLOP/s, "
                    "N={} d=64 causal, 1 thread",
                    LENGTH));
    constexpr std::int64_t SIZES[] = {32, 64, 128, 256};
    std::vector<std::string> headers = {"queries \\ keys"};
    for (const std::int64_t kv : SIZES) headers.push_back(fmt::format("{}", kv));
    headers.emplace_back("computed / needed, square tiles");
    TextTable table(headers);
    auto json = nlohmann::ordered_json::array();
    for (const std::int64_t q : SIZES) {
        std::vector<std::string> cells = {fmt::format("{}", q)};
        double waste = 0;
        for (const std::int64_t kv : SIZES) {
            const TileSize tiles{q, kv};
            const AlignedBuffer workspace(blocked_workspace_bytes(p, LoopOrder::q_outer, tiles, 1));
            const Timing timing = time_runs(
                [&] {
                    blocked_attention(p, data.tensors(), LoopOrder::q_outer, tiles,
                                      workspace.bytes(), 1);
                },
                3, 0.05);
            cells.push_back(fmt::format("{:.1f}", p.flops() / timing.fastest * 1e-9));
            if (kv == q) waste = q_outer_cost(p, tiles).flops / p.flops();
            json.push_back({{"block_q", q},
                            {"block_kv", kv},
                            {"min_ms", timing.fastest * 1e3},
                            {"tile_bytes", workspace.bytes().size()}});
        }
        cells.push_back(fmt::format("{:.2f}", waste));
        table.add(std::move(cells));
    }
    fmt::print("{}", table.str());
    program.results.extras["block_sizes"] = std::move(json);
}

}  // namespace fa
