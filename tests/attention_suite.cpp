#include "tests/attention_suite.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <stdexcept>

#include "tests/suite_checks.h"

namespace fa::suite {

std::span<const SuiteCheck> attention_suite() {
    static constexpr std::array LIST{
        SuiteCheck{"known_values", "small problems whose answers were worked out by hand",
                   check_known_values},
        SuiteCheck{"causal_means", "K = 0 and V_j = j give O_i = i/2, whatever the tile",
                   check_causal_means},
        SuiteCheck{"scale", "default, zero, negative and other explicit scales", check_scale},
        SuiteCheck{"lengths", "awkward lengths, full and causal, against fp64", check_lengths},
        SuiteCheck{"unequal_lengths", "more queries than keys and the reverse, and none",
                   check_unequal_lengths},
        SuiteCheck{"head_dims", "head dimensions from 1 to 256", check_head_dims},
        SuiteCheck{"last_channel", "scores that come from the last channel alone",
                   check_last_channel},
        SuiteCheck{"rows_without_keys", "rows that see no key: O = 0, LSE = -inf",
                   check_rows_without_keys},
        SuiteCheck{"minus_infinity_scores", "visible scores of -inf weigh nothing",
                   check_minus_infinity_scores},
        SuiteCheck{"masked_keys", "NaN and infinity in masked keys change no bit",
                   check_masked_keys},
        SuiteCheck{"visible_nan", "a visible NaN reaches the rows that see it and no other",
                   check_visible_nan},
        SuiteCheck{"extreme_scores",
                   "scores of ±10,000 and ±1e37, rising, falling, spiked and equal",
                   check_extreme_scores},
        SuiteCheck{"grouped_heads", "query head h reads key/value head h / (heads_q/heads_kv)",
                   check_grouped_heads},
        SuiteCheck{"poison", "results do not depend on pads, spare rows or old contents",
                   check_poison},
        SuiteCheck{"layouts", "packed QKV, token-major, broadcast and unaligned tensors",
                   check_layouts},
        SuiteCheck{"far_apart", "rows that lie beyond 2^31 elements", check_far_apart},
        SuiteCheck{"many_heads", "more than 65,535 heads and batches", check_many_heads},
        SuiteCheck{"repeatable", "30 runs agree in every bit", check_repeatable},
        SuiteCheck{"threads", "any number of threads gives the same bits", check_threads},
        SuiteCheck{"heap", "no heap memory that grows with the problem, beside the workspace",
                   check_heap},
        SuiteCheck{"door", "tensors that do not fit the problem are refused, with the reason",
                   check_door},
        SuiteCheck{"refusals", "a problem is either refused untouched or computed right",
                   check_refusals},
    };
    return LIST;
}

const SuiteCheck& check_named(std::string_view name) {
    for (const SuiteCheck& check : attention_suite())
        if (check.name == name) return check;
    throw std::invalid_argument(fmt::format("no check is called \"{}\"", name));
}

Failures run_check(const SuiteCheck& check, const Implementation& implementation) {
    try {
        return check.run(implementation);
    } catch (const std::exception& error) {
        return {fmt::format("{}: threw: {}", implementation.name, error.what())};
    }
}

}  // namespace fa::suite
