#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chapters/01_memory_accounting/naive_attention.h"
#include "chapters/03_blocked_attention/experiments.h"
#include "chapters/03_blocked_attention/traffic.h"
#include "common/aligned_buffer.h"
#include "common/attention_data.h"
#include "common/larger.h"
#include "common/text_table.h"

namespace fa {
namespace {

constexpr Schedule SCHEDULES[] = {Schedule::three_pass, Schedule::kv_outer, Schedule::q_outer};

std::string mebibytes(std::int64_t bytes) {
    return bytes == 0 ? "-" : fmt::format("{:.2f}", static_cast<double>(bytes) / (1 << 20));
}

/// What the law of the schedule counts, in elements: Nd + N² or N²d²/M.
double law(const AttentionProblem& p, Schedule schedule, double on_chip_elements) {
    const auto n = static_cast<double>(p.len_q), d = static_cast<double>(p.head_dim);
    return schedule == Schedule::three_pass ? n * d + n * n : n * n * d * d / on_chip_elements;
}

/// Runs all schedules at one on-chip size, adds a row each.
/// @return whether every count was its formula's, and the largest difference between a schedule's
///         output and the naive one's
std::pair<bool, double> compare_schedules(const AttentionProblem& p, std::int64_t on_chip_kib,
                                          AttentionData<float>& data, const Tensor<float>& naive,
                                          TextTable& table, nlohmann::ordered_json& json) {
    bool equal = true;
    double difference = 0;
    const std::int64_t elements = on_chip_kib * 1024 / static_cast<std::int64_t>(sizeof(float));
    for (const Schedule schedule : SCHEDULES) {
        const TileSize tiles = tiles_on_chip(elements, p.head_dim, schedule);
        TrafficCounter counter;
        std::ranges::fill(data.o, std::nanf(""));  // what is not written must show
        run_schedule(schedule, p, data.tensors(), tiles, &counter);
        const Traffic& counted = counter.traffic;
        const Traffic formula = expected_traffic(p, schedule, tiles);
        equal = equal && counted == formula;
        for (std::size_t i = 0; i < naive.size(); ++i) {
            const double error = std::abs(double{data.o.data()[i]} - double{naive.data()[i]});
            difference = larger_or_nan(difference, error);
        }
        const double in_law = static_cast<double>(counted.total()) / sizeof(float) /
                              law(p, schedule, static_cast<double>(elements));
        table.add({fmt::format("{} KiB", on_chip_kib), std::string(name_of(schedule)),
                   fmt::format("{}x{}", tiles.q, tiles.kv), mebibytes(counted.of(Operand::q)),
                   mebibytes(counted.of(Operand::k) + counted.of(Operand::v)),
                   mebibytes(counted.of(Operand::s) + counted.of(Operand::p)),
                   mebibytes(counted.of(Operand::o)),
                   mebibytes(counted.of(Operand::state) + counted.of(Operand::lse)),
                   mebibytes(counted.total()), mebibytes(formula.total()),
                   fmt::format("{:.2f} {}", in_law,
                               schedule == Schedule::three_pass ? "(Nd+N²)" : "N²d²/M")});
        nlohmann::ordered_json row;
        row["schedule"] = name_of(schedule);
        row["len"] = p.len_q;
        row["head_dim"] = p.head_dim;
        row["causal"] = p.causal;
        row["on_chip_bytes"] = on_chip_kib * 1024;
        row["block_q"] = tiles.q;
        row["block_kv"] = tiles.kv;
        row["counted_bytes"] = counted.total();
        row["formula_bytes"] = formula.total();
        json.push_back(std::move(row));
    }
    table.rule();
    return {equal, difference};
}

Tensor<float> naive_output(const AttentionProblem& p, AttentionData<float>& data) {
    const Launch launch;
    const AlignedBuffer workspace(CPU_NAIVE.workspace_bytes(p, launch));
    attention(CPU_NAIVE, p, data.tensors(), workspace.bytes(), launch);
    return data.o;
}

}  // namespace

void show_traffic(Program& program, const Options& options) {
    program.results.extras["traffic"] = nlohmann::ordered_json::array();
    for (const bool causal : {false, true}) {
        const AttentionProblem p{.len_q = options.traffic_length,
                                 .len_kv = options.traffic_length,
                                 .head_dim = 64,
                                 .causal = causal};
        print_heading(
            fmt::format("Traffic in MiB, counted load by load: N={} d={} fp32, one head, {}",
                        p.len_q, p.head_dim, causal ? "causal" : "full"));
        TextTable table({"on chip M", "schedule", "tile", "Q", "K, V", "S, P", "O", "m, l, LSE",
                         "counted", "formula", "in units of the law"});
        table.left(1);
        AttentionData<float> data(p, program.seed);
        const Tensor<float> naive = naive_output(p, data);
        bool equal = true;
        double difference = 0;
        for (const std::int64_t kib : options.on_chip_kib) {
            const auto [same, error] =
                compare_schedules(p, kib, data, naive, table, program.results.extras["traffic"]);
            equal = equal && same;
            difference = larger_or_nan(difference, error);
        }
        fmt::print("{}", table.str());
        const std::string mask = causal ? "causal" : "full";
        program.checks.that(mask + ": counted traffic is the formula's, byte for byte", "equal",
                            equal ? "equal" : "different", equal);
        program.checks.at_most(mask + ": three passes and both orders give the naive output",
                               difference, 2e-6);
    }

    print_heading("Traffic against length: is it O(N)? M = 64 KiB, d = 64, fp32, full, by formula");
    TextTable table({"N", "Q, K, V, O once", "three passes", "K/V outside", "Q outside",
                     "three passes / Q outside", "Q outside / inputs and output"});
    const std::int64_t elements = 64 * 1024 / static_cast<std::int64_t>(sizeof(float));
    double previous = 0, growth = 0;
    for (std::int64_t n = 512; n <= 16384; n *= 2) {
        const AttentionProblem p{.len_q = n, .len_kv = n, .head_dim = 64};
        const auto bytes = [&](Schedule schedule) {
            return static_cast<double>(
                expected_traffic(p, schedule, tiles_on_chip(elements, 64, schedule)).total());
        };
        const double q_outer = bytes(Schedule::q_outer), three = bytes(Schedule::three_pass);
        table.add({fmt::format("{}", n), human_bytes(qkvo_bytes(p)), human_bytes(three),
                   human_bytes(bytes(Schedule::kv_outer)), human_bytes(q_outer),
                   fmt::format("{:.2f}", three / q_outer),
                   fmt::format("{:.1f}", q_outer / qkvo_bytes(p))});
        growth = q_outer / previous;
        previous = q_outer;
    }
    fmt::print("{}", table.str());
    fmt::print("\nTwice the length, {:.2f} times the bytes: flash traffic is quadratic too.\n",
               growth);
    program.checks.at_least("flash traffic grows with the square: N 8192 to 16384, times", growth,
                            3.9);
}

}  // namespace fa
