#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "chapters/05_exp2/bases.h"
#include "chapters/05_exp2/experiments.h"
#include "chapters/05_exp2/folded_scale.h"
#include "common/larger.h"
#include "common/text_table.h"

namespace fa {
namespace {

/// A number in four significant digits.
std::string number(double x) {
    return with_plain_nan(fmt::format("{:.4g}", x));
}

/// Difference over the size of the right answer, of a number that is not 0. 0 also if both are NaN.
double relative(float got, float want) {
    if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
    return std::abs(double{got} - double{want}) / std::max(std::abs(double{want}), 1e-30);
}

/// The largest of the relative errors of a row's three numbers; NaN if one is NaN.
double largest_error(const OnlineRow& got, const OnlineRow& want) {
    double largest = 0;
    for (const double e : {relative(got.first, want.first), relative(got.last, want.last),
                           relative(got.lse, want.lse)})
        largest = larger_or_nan(largest, e);
    return largest;
}

/// The mistakes that show at all, each on scores that bring it out.
struct FaultCase {
    Fault fault;
    float scale;
    std::string_view scores_are;
    std::vector<float> scores;
};

std::vector<FaultCase> fault_cases() {
    const float infinity = std::numeric_limits<float>::infinity();
    return {
        {Fault::sign_in_constant, -1.0f, "200, -200", {200, -200}},
        {Fault::zero_constant, 0.0f, "1, masked, 2, 3", {1, -infinity, 2, 3}},
        {Fault::fused_correction, 1.0f, "4096 times 5000.3", std::vector<float>(4096, 5000.3f)},
        {Fault::one_constant, 1.0f, "3e11, 1e11", {3e11f, 1e11f}},
        {Fault::lse_in_base_2, 1.0f, "1, 2, 3", {1, 2, 3}},
        {Fault::no_log2_e, 1.0f, "1, 2, 3", {1, 2, 3}},
    };
}

}  // namespace

void show_bases(Program& program, std::span<const float> scores, float scale) {
    const FoldedScale folded(scale);
    const RowSoftmax e = softmax_base_e(scores, scale), two = softmax_base_2(scores, scale);
    print_heading(fmt::format("One row in two bases, scale {:g}", scale));
    fmt::print("c = |scale| log2 e = {:.6g}; Q takes the sign {:g}\n\n", folded.scale_log2,
               folded.sign);
    TextTable table(
        {"score", "scale s - m", "e^", "weight / l", "c s' - c m'", "2^", "weight / l"});
    double largest = 0;
    for (std::size_t j = 0; j < scores.size(); ++j) {
        const WeightSteps &a = e.keys[j], &b = two.keys[j];
        table.add({number(scores[j]), number(a.exponent), fmt::format("{:.6f}", a.weight),
                   fmt::format("{:.6f}", e.probability(j)), number(b.exponent),
                   fmt::format("{:.6f}", b.weight), fmt::format("{:.6f}", two.probability(j))});
        const double difference = relative(two.probability(j), e.probability(j));
        largest = larger_or_nan(largest, difference);
    }
    fmt::print("{}", table.str());
    fmt::print("{}", with_plain_nan(fmt::format("\nm + log l        base e  {:.6g}\n"
                                                "c m' + log2 l    base 2  {:.6g}   times ln 2 = "
                                                "{:.6g}\n",
                                                e.lse, two.lse_base2, two.lse)));
    program.checks.at_most("the same probabilities in both bases", largest, 1e-6);
    program.checks.at_most("the same LSE once it is natural", relative(two.lse, e.lse), 1e-6);
}

void show_faults(Program& program) {
    print_heading("What goes wrong on the way to base 2 (blocks of 2 scores)");
    TextTable table(
        {"mistake", "scale", "scores", "P first", "right", "P last", "right", "LSE", "right"});
    table.left(2);
    constexpr std::size_t BLOCK = 2;
    double right_error = 0;
    for (const FaultCase& c : fault_cases()) {
        const OnlineRow want = online_reference(c.scores, c.scale);
        const OnlineRow wrong = online_base_2(c.scores, c.scale, BLOCK, c.fault);
        const OnlineRow right = online_base_2(c.scores, c.scale, BLOCK, Fault::none);
        table.add({std::string(name_of(c.fault)), fmt::format("{:g}", c.scale),
                   std::string(c.scores_are), number(wrong.first), number(want.first),
                   number(wrong.last), number(want.last), number(wrong.lse), number(want.lse)});
        const double error = largest_error(right, want);
        right_error = larger_or_nan(right_error, error);
        const double seen = largest_error(wrong, want);
        program.checks.that(fmt::format("{}: it shows", name_of(c.fault)), "an error > 0.01",
                            number(seen), !(seen <= 0.01));
    }
    fmt::print("{}", table.str());
    // A sum of 4096 terms, half a unit in the last place lost at each.
    program.checks.at_most("without mistakes, the largest error in these rows", right_error,
                           4096 * 0x1p-24);
}

}  // namespace fa
