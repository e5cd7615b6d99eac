#include "chapters/03_blocked_attention/traffic.h"

#include <algorithm>
#include <numeric>

#include "chapters/03_blocked_attention/blocked_attention.h"
#include "chapters/03_blocked_attention/three_pass_attention.h"
#include "common/aligned_buffer.h"

namespace fa {
namespace {

std::size_t index(Operand operand) {
    return static_cast<std::size_t>(operand);
}

constexpr std::int64_t FLOAT_BYTES = sizeof(float);

}  // namespace

std::string_view name_of(Schedule schedule) {
    switch (schedule) {
        case Schedule::three_pass: return "three passes";
        case Schedule::kv_outer: return "K/V outside";
        case Schedule::q_outer: return "Q outside";
    }
    return "?";
}

std::int64_t Traffic::of(Operand operand) const {
    return loaded[index(operand)] + stored[index(operand)];
}

std::int64_t Traffic::total() const {
    return std::accumulate(loaded.begin(), loaded.end(), std::int64_t{0}) +
           std::accumulate(stored.begin(), stored.end(), std::int64_t{0});
}

void TrafficCounter::loaded(Operand operand, std::int64_t, std::int64_t bytes) {
    traffic.loaded[index(operand)] += bytes;
}

void TrafficCounter::stored(Operand operand, std::int64_t, std::int64_t bytes) {
    traffic.stored[index(operand)] += bytes;
}

void TrafficCounter::tile(std::int64_t, std::int64_t, TileKind kind) {
    ++tiles_[static_cast<std::size_t>(kind)];
}

// [formula]
Traffic expected_traffic(const AttentionProblem& p, Schedule schedule, TileSize sizes) {
    const auto element = static_cast<std::int64_t>(size_of(p.dtype));
    const std::int64_t heads = p.batch * p.heads_q, d = p.head_dim;

    // Sums over query blocks: the tiles that a block visits, and their area.
    std::int64_t row_visits = 0;  // Σ rows · tiles
    std::int64_t keys = 0;        // Σ keys of the visited tiles
    std::int64_t scores = 0;      // Σ rows · keys
    for (std::int64_t first = 0; first < p.len_q; first += sizes.q) {
        const std::int64_t rows = std::min(sizes.q, p.len_q - first);
        const std::int64_t visible = p.visible_keys(first + rows - 1);
        const std::int64_t tiles = (visible + sizes.kv - 1) / sizes.kv;
        const std::int64_t visited = std::min(tiles * sizes.kv, p.len_kv);
        row_visits += rows * tiles;
        keys += visited;
        scores += rows * visited;
    }

    Traffic traffic;
    const auto loaded = [&](Operand operand, std::int64_t count, std::int64_t size) {
        traffic.loaded[index(operand)] += heads * count * size;
    };
    const auto stored = [&](Operand operand, std::int64_t count, std::int64_t size) {
        traffic.stored[index(operand)] += heads * count * size;
    };
    stored(Operand::o, p.len_q * d, element);
    stored(Operand::lse, p.len_q, FLOAT_BYTES);
    if (schedule == Schedule::kv_outer) {
        loaded(Operand::k, p.len_kv * d, element);  // once
        loaded(Operand::v, p.len_kv * d, element);
        loaded(Operand::q, row_visits * d, element);
        // O, m and l: zeroed, rewritten by every tile, and read for the last time to be divided.
        stored(Operand::o, (p.len_q + row_visits) * d, FLOAT_BYTES);
        loaded(Operand::o, (row_visits + p.len_q) * d, FLOAT_BYTES);
        stored(Operand::state, (p.len_q + row_visits) * 2, FLOAT_BYTES);
        loaded(Operand::state, (row_visits + p.len_q) * 2, FLOAT_BYTES);
    } else {
        loaded(Operand::q, p.len_q * d, element);  // once
        loaded(Operand::k, keys * d, element);
        loaded(Operand::v, keys * d, element);
    }
    if (schedule == Schedule::three_pass)
        for (const Operand matrix : {Operand::s, Operand::p}) {
            stored(matrix, scores, FLOAT_BYTES);
            loaded(matrix, scores, FLOAT_BYTES);
        }
    return traffic;
}
// [formula]

TileSize tiles_on_chip(std::int64_t elements, std::int64_t head_dim, Schedule schedule) {
    const TileSize tiles = flash_tiles(elements, head_dim);
    if (schedule == Schedule::kv_outer) return tiles;
    return {.q = tiles.kv, .kv = tiles.q};
}

void run_schedule(Schedule schedule, const AttentionProblem& problem,
                  const AttentionTensors& tensors, TileSize sizes, ScheduleObserver* observer) {
    if (schedule == Schedule::three_pass) {
        const AlignedBuffer workspace(three_pass_workspace_bytes(problem, sizes));
        three_pass_attention(problem, tensors, sizes, workspace.bytes(), observer);
        return;
    }
    const LoopOrder order =
        schedule == Schedule::q_outer ? LoopOrder::q_outer : LoopOrder::kv_outer;
    const AlignedBuffer workspace(blocked_workspace_bytes(problem, order, sizes, 1));
    blocked_attention(problem, tensors, order, sizes, workspace.bytes(), 1, observer);
}

}  // namespace fa
