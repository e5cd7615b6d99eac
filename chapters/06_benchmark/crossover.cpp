#include "chapters/06_benchmark/crossover.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chapters/06_benchmark/shapes.h"
#include "chapters/06_benchmark/tiles_of.h"
#include "common/progress.h"
#include "common/text_table.h"

namespace fa {
namespace {

constexpr int RUNS = 15;

struct Measured {
    double seconds = 0;
    std::int64_t kernels = 0;
    std::optional<TileSize> tiles;
};

/// One implementation at one length.
struct Cell {
    std::optional<Measured> measured;
    std::string refusal;  ///< the implementation's; empty also if the memory did not suffice
};

Cell measure_one(const Implementation& implementation, const AttentionProblem& problem,
                 const CaseOptions& options) {
    try {
        const auto timed = prepare(implementation, problem, CacheState::warm, options);
        return {Measured{.seconds = time_case(*timed, RUNS).median,
                         .kernels = timed->kernels(),
                         .tiles = tiles_of(implementation, problem)},
                {}};
    } catch (const OutOfMemory&) {
        return {};
    } catch (const Unsupported& refusal) {  // of the problem, or of its tensors
        return {std::nullopt, refusal.what()};
    }
}

/// What was measured: for each length, the naive implementation and then the fused ones.
struct Grid {
    AttentionProblem base;
    std::vector<std::int64_t> lengths;
    std::vector<const Implementation*> implementations;
    std::vector<std::vector<Cell>> cells;  ///< [length][implementation]

    AttentionProblem problem(std::size_t i) const {
        AttentionProblem p = base;
        p.len_q = p.len_kv = lengths[i];
        return p;
    }
    /// The lengths at which both the naive implementation and the n-th ran.
    std::vector<Pair> pairs(std::size_t n) const {
        std::vector<Pair> result;
        for (std::size_t i = 0; i < lengths.size(); ++i)
            if (const auto& naive = cells[i][0].measured, &fused = cells[i][n].measured;
                naive && fused)
                result.push_back({lengths[i], naive->seconds, fused->seconds});
        return result;
    }
    /// Why fewer than two of them are left: what the n-th implementation, or the naive one, refuses
    /// first. Empty if two are left, or the memory is what lacked.
    std::string refusal(std::size_t n) const {
        if (pairs(n).size() >= 2) return {};
        for (const auto& row : cells)
            for (const std::size_t which : {n, std::size_t{0}})
                if (!row[which].refusal.empty()) return row[which].refusal;
        return {};
    }
};

void print_times(const Grid& grid) {
    std::vector<std::string> headers{"T"};
    for (const Implementation* i : grid.implementations) headers.emplace_back(i->name);
    TextTable table(headers);
    for (std::size_t i = 0; i < grid.lengths.size(); ++i) {
        std::vector<std::string> cells{fmt::format("{}", grid.lengths[i])};
        for (const auto& cell : grid.cells[i])
            cells.push_back(cell.measured ? human_seconds(cell.measured->seconds) : "-");
        table.add(std::move(cells));
    }
    fmt::print("{}", table.str());
}

/// What explains the times: how many blocks there are to share among the processors, and how many
/// of the scores that they compute count.
void print_reasons(const Grid& grid) {
    std::string kernels;
    for (std::size_t n = 0; n < grid.implementations.size(); ++n)
        if (const auto& first = grid.cells.front()[n].measured; first && first->kernels > 0)
            kernels += fmt::format("{}{} {}", kernels.empty() ? "" : ", ",
                                   grid.implementations[n]->name, first->kernels);
    if (!kernels.empty()) fmt::print("\nKernels that a call launches: {}.\n", kernels);

    fmt::print(
        "\nBlocks of queries, and of the scores computed in their tiles those that count:\n");
    std::vector<std::string> headers{"T"};
    for (std::size_t n = 1; n < grid.implementations.size(); ++n)
        headers.emplace_back(grid.implementations[n]->name);
    TextTable table(headers);
    for (std::size_t i = 0; i < grid.lengths.size(); ++i) {
        const AttentionProblem p = grid.problem(i);
        std::vector<std::string> cells{fmt::format("{}", grid.lengths[i])};
        for (std::size_t n = 1; n < grid.implementations.size(); ++n) {
            const auto& measured = grid.cells[i][n].measured;
            if (!measured || !measured->tiles) {
                cells.push_back("-");
                continue;
            }
            const TileSize tile = *measured->tiles;
            const std::int64_t per_head = (p.len_q + tile.q - 1) / tile.q;
            cells.push_back(fmt::format("{}, {:.0f} %", p.batch * p.heads_q * per_head,
                                        100 * tile_fill(p, tile.q, tile.kv)));
        }
        table.add(std::move(cells));
    }
    fmt::print("{}", table.str());
}

}  // namespace

// [crossover]
std::optional<double> crossover(const std::vector<Pair>& pairs) {
    for (std::size_t i = pairs.size(); i-- > 1;) {
        const Pair &shorter = pairs[i - 1], &longer = pairs[i];
        const double before = std::log(shorter.naive / shorter.fused);
        const double after = std::log(longer.naive / longer.fused);
        if (!(after > 0)) return std::nullopt;  // the naive way is faster at the longest
        if (before > 0) continue;
        const double x = std::log(static_cast<double>(shorter.length));
        const double step = std::log(static_cast<double>(longer.length)) - x;
        return std::exp(x + step * before / (before - after));
    }
    return std::nullopt;
}
// [crossover]

std::string verdict(const std::vector<Pair>& pairs) {
    if (pairs.empty()) return "nothing was timed";
    const std::int64_t first = pairs.front().length, last = pairs.back().length;
    if (const auto at = crossover(pairs)) return fmt::format("faster from T = {:.0f} on", *at);
    if (pairs.back().fused < pairs.back().naive)
        return fmt::format("faster at every length from {} to {}", first, last);
    std::vector<Pair> exchanged = pairs;
    for (Pair& pair : exchanged) std::swap(pair.naive, pair.fused);
    const auto at = crossover(exchanged);
    if (!at) return fmt::format("not faster at any length from {} to {}", first, last);
    const bool faster_below = std::ranges::all_of(pairs, [&](const Pair& pair) {
        return static_cast<double>(pair.length) > *at || pair.fused <= pair.naive;
    });
    return fmt::format("{}slower from T = {:.0f} on, up to {}",
                       faster_below ? "faster at first, " : "", *at, last);
}

double tile_fill(const AttentionProblem& p, std::int64_t block_q, std::int64_t block_kv) {
    double computed = 0, visible = 0;
    for (std::int64_t first = 0; first < p.len_q; first += block_q) {
        const std::int64_t last = std::min(first + block_q, p.len_q) - 1;
        const std::int64_t tiles = (p.visible_keys(last) + block_kv - 1) / block_kv;
        computed += static_cast<double>(block_q * tiles * block_kv);
        for (std::int64_t i = first; i <= last; ++i)
            visible += static_cast<double>(p.visible_keys(i));
    }
    return computed == 0 ? 1 : visible / computed;
}

void show_crossover(Program& program, const AttentionProblem& base,
                    const std::vector<std::int64_t>& lengths, const Implementation& naive,
                    const std::vector<const Implementation*>& fused, const CaseOptions& options) {
    print_heading(fmt::format("Where {} is faster, measured: {}", naive.name,
                              ShapeSet{.name = {}, .base = base, .lengths = {}}.title()));
    fmt::print("Medians of {} runs, warm caches.\n\n", RUNS);
    Grid grid{.base = base, .lengths = lengths, .implementations = {&naive}, .cells = {}};
    grid.implementations.insert(grid.implementations.end(), fused.begin(), fused.end());
    {
        Progress progress("crossover",
                          static_cast<std::int64_t>(lengths.size() * grid.implementations.size()));
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            auto& row = grid.cells.emplace_back();
            for (const Implementation* implementation : grid.implementations) {
                row.push_back(measure_one(*implementation, grid.problem(i), options));
                progress.advance();
            }
        }
    }
    print_times(grid);
    fmt::print("\n");
    auto found = nlohmann::ordered_json::array();
    for (std::size_t n = 1; n < grid.implementations.size(); ++n) {
        const std::vector<Pair> pairs = grid.pairs(n);
        const auto at = crossover(pairs);
        const std::string_view name = grid.implementations[n]->name;
        const std::string refusal = grid.refusal(n);
        const std::string found_out = refusal.empty() ? verdict(pairs) : "refused: " + refusal;
        fmt::print("=> {}: {}\n", name, found_out);
        auto points = nlohmann::ordered_json::array();
        for (const Pair& pair : pairs)
            points.push_back({{"length", pair.length},
                              {"naive_ms", 1e3 * pair.naive},
                              {"fused_ms", 1e3 * pair.fused}});
        found.push_back({{"implementation", name},
                         {"naive", naive.name},
                         {"crossover", number_or_null(at)},
                         {"verdict", found_out},
                         {"points", points}});
        if (refusal.empty())
            program.checks.at_least(fmt::format("{}: lengths timed beside {}", name, naive.name),
                                    static_cast<double>(pairs.size()), 2);
    }
    print_reasons(grid);
    program.results.extras["crossover"] = std::move(found);
}

}  // namespace fa
