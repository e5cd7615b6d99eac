#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "chapters/03_blocked_attention/experiments.h"
#include "chapters/03_blocked_attention/register_tiles.h"
#include "chapters/03_blocked_attention/tiles.h"
#include "common/random.h"
#include "common/stopwatch.h"
#include "common/text_table.h"

namespace fa {
namespace {

constexpr std::int64_t DIM = 64;
constexpr std::int64_t TILE = 64;
constexpr double SCORES = TILE * TILE;

/// Seconds of one call, the fastest of many batches of calls.
double seconds_of(const std::function<void()>& work) {
    constexpr int CALLS = 50;
    const Timing timing = time_runs(
        [&] {
            for (int i = 0; i < CALLS; ++i) work();
        },
        20, 0.05);
    return timing.fastest / CALLS;
}

std::vector<float> random_floats(std::int64_t count, Random& random) {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    random.fill_normal(numbers, 0.125f);
    return numbers;
}

/// Times of the parts of a tile of 64×64 scores, all operands in the caches.
struct Parts {
    double scores = 0, softmax = 0, values = 0, load = 0;
    double sum() const { return scores + softmax + values + load; }
};

Parts time_eigen(Random& random) {
    using namespace tiles;
    const AttentionProblem p{.len_q = TILE, .len_kv = TILE, .head_dim = DIM};
    auto q = random_floats(TILE * DIM, random), k = random_floats(TILE * DIM, random),
         v = random_floats(TILE * DIM, random), o = random_floats(TILE * DIM, random),
         m = random_floats(TILE, random), l = random_floats(TILE, random),
         s = random_floats(TILE * TILE, random);
    const std::vector<float> slow = random_floats(2 * TILE * DIM, random);
    const Span span{0, TILE};
    QueryTile queries{span, Tile(q.data(), TILE, DIM), Tile(o.data(), TILE, DIM),
                      Column(m.data(), TILE), Column(l.data(), TILE)};
    KeyTile keys{span, Tile(k.data(), TILE, DIM), Tile(v.data(), TILE, DIM)};
    Tile tile(s.data(), TILE, TILE);

    Parts parts;
    parts.load = seconds_of([&] {
        std::copy_n(slow.data(), TILE * DIM, k.data());
        std::copy_n(slow.data() + TILE * DIM, TILE * DIM, v.data());
    });
    parts.scores = seconds_of([&] { tile.noalias() = queries.q * keys.k.transpose(); });
    parts.softmax = seconds_of([&] { softmax_tile(p, span, tile, queries); });
    parts.values = seconds_of([&] { add_weighted_values(p, tile, span, keys.v, queries); });
    return parts;
}

Parts time_lanes(Random& random) {
    using namespace register_tiles;
    auto q_t = random_floats(DIM * BLOCK_Q, random),
         s_t = random_floats(BLOCK_KV * BLOCK_Q, random),
         o_t = random_floats(DIM * BLOCK_Q, random);
    const auto k = random_floats(BLOCK_KV * DIM, random), v = random_floats(BLOCK_KV * DIM, random);
    Visibility visible{.all = BLOCK_KV, .seen = {}, .limit = {}};
    std::fill_n(visible.seen, ROW_VECTORS, BLOCK_KV);
    const ExpWeights weights(1.0f);
    State state{};
    Rows maximum{}, correction{};

    const double tiles = static_cast<double>(BLOCK_Q * BLOCK_KV) / SCORES;
    Parts parts;
    parts.scores = seconds_of([&] {
                       scores(q_t.data(), {k.data(), DIM}, DIM, visible, s_t.data(), maximum);
                   }) /
                   tiles;
    parts.softmax = seconds_of([&] {
                        softmax_block(weights, s_t.data(), visible, maximum, state, correction);
                    }) /
                    tiles;
    parts.values =
        seconds_of([&] {
            weighted_sum(s_t.data(), {v.data(), DIM}, DIM, visible, correction, o_t.data());
        }) /
        tiles;
    return parts;
}

}  // namespace

void show_tile(Program& program, const MachineRates& rates) {
    Random random(program.seed);
    const Parts eigen = time_eigen(random), lanes = time_lanes(random);
    const double product = 2 * SCORES * DIM / rates.product_flops;
    const Parts at_best{
        .scores = product, .softmax = SCORES / rates.simd_exponentials, .values = product};
    print_heading("One tile of 64x64 scores, d = 64, part by part, measured in cache, 1 thread");
    TextTable table(
        {"part", "at the ceilings", "Eigen, rows", "rate", "lanes", "rate", "Eigen / lanes"});
    auto json = nlohmann::ordered_json::array();
    const auto add = [&](const char* part, double best, double rows, double by_lanes, double work,
                         const char* unit) {
        const auto rate = [&](double seconds) {
            return work > 0 && seconds > 0 ? human_count(work / seconds, unit) : std::string();
        };
        table.add({part, best > 0 ? human_seconds(best) : "-", human_seconds(rows), rate(rows),
                   by_lanes > 0 ? human_seconds(by_lanes) : "-", rate(by_lanes),
                   by_lanes > 0 ? fmt::format("{:.2f}", rows / by_lanes) : ""});
        json.push_back(
            {{"part", part}, {"ceiling_s", best}, {"eigen_s", rows}, {"lanes_s", by_lanes}});
    };
    const double flops = 2 * SCORES * DIM;
    add("load K and V", 0, eigen.load, 0, 0, "");
    add("S = Q K^T", at_best.scores, eigen.scores, lanes.scores, flops, "FLOP/s");
    add("softmax", at_best.softmax, eigen.softmax, lanes.softmax, SCORES, "exp/s");
    add("O += P V", at_best.values, eigen.values, lanes.values, flops, "FLOP/s");
    table.rule();
    add("sum", at_best.sum(), eigen.sum(), lanes.sum(), 2 * flops, "FLOP/s");
    fmt::print("{}", table.str());
    program.results.extras["tile_parts"] = std::move(json);
}

}  // namespace fa
