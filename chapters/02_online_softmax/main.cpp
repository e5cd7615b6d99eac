/// @file
/// ch02_online_softmax: the recurrence step by step, with V, merged in any order, and its pitfalls.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "chapters/02_online_softmax/online_softmax.h"
#include "chapters/02_online_softmax/orders.h"
#include "chapters/02_online_softmax/pitfalls.h"
#include "chapters/02_online_softmax/trace.h"
#include "common/larger.h"
#include "common/program.h"
#include "common/random.h"
#include "common/text_table.h"

namespace {

using namespace fa;

constexpr float INFINITE = std::numeric_limits<float>::infinity();
/// Scores that lie so far apart, and their differences, are finite in fp32.
constexpr double LARGEST_SPREAD = 1e37;
constexpr double HALF_ULP = 0x1p-24;  // of fp32, relative: the error of one rounding

/// Some scores and the rows of V that belong to them.
struct Keys {
    std::vector<float> scores;
    std::vector<float> values;  ///< [scores.size(), head_dim]
    std::size_t head_dim;
};

/// A number in `digits` significant digits.
std::string number(double x, int digits) {
    return with_plain_nan(fmt::format("{:.{}g}", x, digits));
}

/// The numbers, or the first of them and how many there are.
template <class Range>
std::string list(const Range& numbers) {
    constexpr std::size_t SHOWN = 8;
    std::vector<std::string> texts;
    for (const auto x : numbers)
        if (texts.size() < SHOWN) texts.push_back(number(double{x}, 4));
    return fmt::format("{}{}", fmt::join(texts, ", "),
                       numbers.size() > SHOWN ? fmt::format(", ... ({})", numbers.size()) : "");
}

/// Relative error, 0 also if both are NaN or the same infinity.
double relative_error(double got, double want) {
    if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
    return std::abs(got - want) / std::abs(want);
}

/// Largest |O − O of two passes| over the largest |v|.
double output_error(const AttentionState& state, const Keys& keys, const TwoPassResult& want) {
    float largest = 0;
    for (const float v : keys.values) largest = std::max(largest, std::abs(v));
    double error = 0;
    const std::vector<float> output = state.output();
    for (std::size_t c = 0; c < output.size(); ++c) {
        if (std::isnan(output[c]) && std::isnan(want.output[c])) continue;
        const double difference = std::abs(double{output[c]} - want.output[c]);
        error = larger_or_nan(error, difference);
    }
    return largest > 0 ? error / double{largest} : error;
}

/// At most three roundings (exp, product, sum) for each of the `depth` states that a score passes
/// through, and three more: the weight itself, the division, and all errors of exp's arguments,
/// m_old − m_new, together.
double error_bound(std::size_t depth) {
    return (3.0 * static_cast<double>(depth) + 3) * HALF_ULP;
}

/// Rows of long tables: the first and last few.
bool is_shown(std::size_t row, std::size_t rows) {
    return rows <= 16 || row < 6 || row + 6 >= rows;
}

void show_recurrence(Program& program, const Keys& keys, std::size_t block) {
    print_heading(fmt::format("{} scores, {} at a time", keys.scores.size(), block));
    const auto trace = trace_online_softmax(keys.scores, block, keys.values, keys.head_dim);
    TextTable table({"block", "scores", "m old", "m new", "exp(m old - m new)", "l rescaled",
                     "+ weights", "= l"});
    TextTable with_v({"block", "rows of V", "acc old", "rescaled", "= acc"});
    double worst_correction = 0;
    for (std::size_t b = 0; b < trace.size(); ++b) {
        const TraceStep& step = trace[b];
        const SoftmaxState &before = step.before.softmax, &after = step.after.softmax;
        worst_correction = larger_or_nan(double{step.correction}, worst_correction);
        if (!is_shown(b, trace.size())) {
            if (b == 6) table.add({"...", "", "", "", "", "", "", ""});
            if (b == 6) with_v.add({"...", "", "", "", ""});
            continue;
        }
        float weights = 0;
        for (const float weight : step.weights) weights += weight;
        table.add({fmt::format("{}", b), list(step.scores), fmt::format("{:.4g}", before.max),
                   fmt::format("{:.4g}", after.max), fmt::format("{:.6f}", step.correction),
                   fmt::format("{:.6f}", before.sum * step.correction),
                   fmt::format("{:.6f}", weights), fmt::format("{:.6f}", after.sum)});
        std::vector<std::string> rows;
        for (std::size_t j = 0; j < std::min<std::size_t>(step.scores.size(), 4); ++j)
            rows.push_back(
                "(" + list(std::span(step.values).subspan(j * keys.head_dim, keys.head_dim)) + ")");
        if (step.scores.size() > 4) rows.push_back(fmt::format("... ({})", step.scores.size()));
        std::vector<float> rescaled = step.before.acc;
        for (float& a : rescaled) a *= step.correction;
        with_v.add({fmt::format("{}", b), fmt::format("{}", fmt::join(rows, " ")),
                    "(" + list(step.before.acc) + ")", "(" + list(rescaled) + ")",
                    "(" + list(step.after.acc) + ")"});
    }
    const AttentionState& last = trace.back().after;
    const TwoPassResult want = two_passes(keys.scores, keys.values, keys.head_dim);
    const double sum_error = relative_error(double{last.softmax.sum}, want.sum);
    const double o_error = output_error(last, keys, want);
    fmt::print("{}", table.str());
    fmt::print("\n           one pass, fp32   two passes, fp64\n");
    fmt::print("m          {:<16} {}\n", number(double{last.softmax.max}, 9), number(want.max, 9));
    fmt::print("l          {:<16} {}\n", number(double{last.softmax.sum}, 9), number(want.sum, 9));
    fmt::print("LSE        {:<16} {}\n", number(double{last.softmax.lse()}, 9),
               number(want.sum == 0 ? -double{INFINITE} : want.max + std::log(want.sum), 9));

    print_heading("The same with V");
    fmt::print("{}", with_v.str());
    fmt::print("\nO = acc / l, one pass    ({})\nO, two passes, fp64      ({})\n",
               list(last.output()), list(want.output));

    program.results.extras["trace"] = to_json(trace);
    program.checks.equal("m of one pass is the maximum", double{last.softmax.max}, want.max);
    program.checks.at_most("l, relative error against two passes", sum_error,
                           error_bound(keys.scores.size()));
    program.checks.at_most("O, error against two passes, over the largest |v|", o_error,
                           2 * error_bound(keys.scores.size()));
    program.checks.at_most("corrections never amplify", worst_correction, 1);
}

void show_merges(Program& program, std::size_t count, float spread) {
    constexpr std::size_t HEAD_DIM = 8, BLOCK = 64;
    Random random(program.seed);
    Keys keys{std::vector<float>(count), std::vector<float>(count * HEAD_DIM), HEAD_DIM};
    random.fill_normal(keys.scores, spread);
    random.fill_normal(keys.values);
    const TwoPassResult want = two_passes(keys.scores, keys.values, HEAD_DIM);
    const std::size_t blocks = (count + BLOCK - 1) / BLOCK;
    const auto log2_of = [](std::size_t n) {
        return static_cast<std::size_t>(std::bit_width(n - 1));
    };

    print_heading(fmt::format("{} random scores (standard deviation {:g}), merged in any order",
                              count, spread));
    TextTable table({"order", "longest path", "m", "l", "error of l", "error of O", "bound of l"});
    const auto add = [&](const char* order, std::size_t depth, const AttentionState& state) {
        const double sum_error = relative_error(double{state.softmax.sum}, want.sum);
        const double o_error = output_error(state, keys, want);
        table.add({order, fmt::format("{}", depth), fmt::format("{:.6g}", state.softmax.max),
                   fmt::format("{:.6g}", state.softmax.sum), fmt::format("{:.1e}", sum_error),
                   fmt::format("{:.1e}", o_error), fmt::format("{:.1e}", error_bound(depth))});
        program.checks.that(fmt::format("merged {}: m, l and O as two passes", order),
                            fmt::format("<= {:.1e}", error_bound(depth)),
                            fmt::format("{:.1e}", std::max(sum_error, o_error / 2)),
                            double{state.softmax.max} == want.max &&
                                sum_error <= error_bound(depth) &&
                                o_error <= 2 * error_bound(depth));
    };
    const auto ones = states_of_blocks(keys.scores, 1, keys.values, HEAD_DIM);
    const auto blocks_of_64 = states_of_blocks(keys.scores, BLOCK, keys.values, HEAD_DIM);
    add("one by one", count, merge_one_by_one(ones));
    add("in blocks of 64", BLOCK + blocks, merge_one_by_one(blocks_of_64));
    add("as a tree", log2_of(count), merge_tree(ones));
    add("as a tree of blocks", BLOCK + log2_of(blocks), merge_tree(blocks_of_64));
    const MergedState pairs = merge_random_pairs(ones, random);
    add("in random pairs", pairs.depth, pairs.state);
    add("backwards", count, merge_backwards(ones));
    fmt::print("{}", table.str());
}

void show_overflow(Program& program) {
    print_heading("Where exp overflows, and what the maximum is for");
    TextTable table({"type", "largest number", "its logarithm", "last x with finite exp(x)",
                     "scores", "softmax without max", "with max"});
    const auto add = [&](DType dtype, double logarithm, const std::string& last,
                         std::vector<float> scores) {
        const RoundedSoftmax unsafe = softmax_without_max(scores, dtype);
        const RoundedSoftmax safe = softmax_with_max(scores, dtype);
        table.add({std::string(name_of(dtype)), fmt::format("{:.5g}", largest_finite(dtype)),
                   fmt::format("{:.4f}", logarithm), last, list(scores), list(unsafe.weights),
                   list(safe.weights)});
        const double sum = double{safe.weights[0]} + double{safe.weights[1]};
        program.checks.that(fmt::format("{}, scores {}: only the maximum saves softmax",
                                        name_of(dtype), list(scores)),
                            "NaN without, sum 1 with",
                            fmt::format("{} without, sum {:.3g} with",
                                        std::isnan(unsafe.weights[0]) ? "NaN" : "finite", sum),
                            std::isnan(unsafe.weights[0]) && std::abs(sum - 1) <= 0.01);
    };
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
        const float last = last_finite_exp(dtype);
        const double logarithm = std::log(largest_finite(dtype));
        add(dtype, logarithm, fmt::format("{:.4f}", last), {std::ceil(last) + 1, std::ceil(last)});
        program.checks.at_most(
            fmt::format("{}: exp overflows past log of the largest number, off by", name_of(dtype)),
            std::abs(double{last} - logarithm), 0.005);
    }
    add(DType::f32, std::log(largest_finite(DType::f32)), "", {-200, -201});
    fmt::print("{}", table.str());
}

void show_blocks_of_minus_infinity(Program& program) {
    print_heading("Blocks of -inf, as masks make them: 8 scores, 2 at a time");
    TextTable table({"-inf stands", "scores", "l without guard", "m", "l", "O", "O, two passes"});
    const auto add = [&](const char* where, std::vector<float> scores, bool guard_needed) {
        Keys keys{scores, {1, 2, 3, 4, 5, 6, 7, 8}, 1};
        const AttentionState state =
            trace_online_softmax(keys.scores, 2, keys.values, 1).back().after;
        const TwoPassResult want = two_passes(keys.scores, keys.values, 1);
        const float unguarded = unguarded_online_softmax(scores, 2).sum;
        table.add({where, list(scores), number(double{unguarded}, 5),
                   fmt::format("{:g}", state.softmax.max), fmt::format("{:.5g}", state.softmax.sum),
                   fmt::format("{:.5g}", state.output()[0]),
                   fmt::format("{:.5g}", want.output[0])});
        const double error = output_error(state, keys, want);
        program.checks.at_most(fmt::format("-inf {}: error of O", where), error,
                               2 * error_bound(8));
        if (guard_needed)
            program.checks.that(fmt::format("-inf {}: the guard is needed", where), "NaN without",
                                number(double{unguarded}, 5) + " without", std::isnan(unguarded));
    };
    const float inf = INFINITE;
    add("at the start", {-inf, -inf, 1, 3, 2, 5, 4, 0}, true);
    add("in the middle", {1, 3, -inf, -inf, 2, 5, 4, 0}, false);
    add("at the end", {1, 3, 2, 5, 4, 0, -inf, -inf}, false);
    add("everywhere", std::vector<float>(8, -inf), true);
    table.left(0);
    fmt::print("{}", table.str());
}

}  // namespace

int main(int argc, char** argv) {
    Program program("ch02_online_softmax", "Softmax, and attention, in one pass over the scores.");
    std::string scores_text = "1,3,2,5,4,0,6,-1", values_text;
    std::size_t block = 2, random_count = 0, merge_count = 1000;
    double spread = 3;
    auto* const scores_flag =
        program.flags().add_option("--scores", scores_text, "scores, such as 1,3.5,-inf");
    program.flags()
        .add_option("--random", random_count, "this many random scores instead")
        ->check(between(1, 1 << 20))
        ->excludes(scores_flag);
    program.flags().add_option("--values", values_text, "first column of V; default 1,2,3,...");
    program.flags().add_option("--block", block, "scores per block")->check(between(1, 1 << 20));
    program.flags()
        .add_option("--spread", spread, "standard deviation of random scores")
        ->check(between(0, LARGEST_SPREAD));
    program.flags()
        .add_option("--merge", merge_count, "number of random scores to merge in any order")
        ->check(between(2, 1 << 20));

    return program.run(argc, argv, [&] {
        Keys keys{{}, {}, 2};
        keys.scores = parse_floats("--scores", scores_text);
        if (random_count > 0) {
            keys.scores.resize(random_count);
            Random(program.seed).fill_normal(keys.scores, as_fp32("--spread", spread));
        }
        // V has two columns: any numbers, and ones, whose acc is l and whose output is 1.
        std::vector<float> column(keys.scores.size());
        for (std::size_t j = 0; j < column.size(); ++j) column[j] = static_cast<float>(j + 1);
        if (!values_text.empty()) column = parse_floats("--values", values_text);
        if (column.size() != keys.scores.size())
            throw UsageError(fmt::format("--values: {} values for {} scores", column.size(),
                                         keys.scores.size()));
        double sum_of_values = 0;
        for (const float value : column) {
            if (!std::isfinite(value))  // times a weight of 0 it is NaN in one order, 0 in another
                throw UsageError(fmt::format("--values: {} is not finite", value));
            keys.values.insert(keys.values.end(), {value, 1.0f});
            sum_of_values += std::abs(double{value});
        }
        if (sum_of_values > double{std::numeric_limits<float>::max()})  // acc may become as large
            throw UsageError("--values: their sum does not fit into fp32");

        show_recurrence(program, keys, block);
        show_merges(program, merge_count, as_fp32("--spread", spread));
        show_overflow(program);
        show_blocks_of_minus_infinity(program);
    });
}
