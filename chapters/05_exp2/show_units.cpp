#include <fmt/format.h>

#include "chapters/05_exp2/experiments.h"
#include "chapters/05_exp2/unit_model.h"
#include "common/text_table.h"

namespace fa {

void show_units(Program& program, std::int64_t head_dim) {
    const TileShape shape = tile_shape(head_dim);
    print_heading(fmt::format("Predicted: a tile of {} x {} at d = {}, by unit", shape.block_m,
                              shape.block_n, shape.head_dim));

    TextTable instructions({"instructions of a thread", "exp", "exp2", "saved"});
    const auto add = [&](const char* name, double exp, double exp2) {
        instructions.add({name, fmt::format("{:.0f}", exp), fmt::format("{:.0f}", exp2),
                          fmt::format("{:.0f}", exp - exp2)});
    };
    const TileInstructions soft = softmax_instructions(shape, Exponential::exp);
    const TileInstructions soft2 = softmax_instructions(shape, Exponential::exp2);
    const TileInstructions all = tile_instructions(shape, Exponential::exp);
    const TileInstructions all2 = tile_instructions(shape, Exponential::exp2);
    add("softmax: FFMA, FMUL, FADD", soft.multiply_adds, soft2.multiply_adds);
    add("softmax: MUFU", soft.exponentials, soft2.exponentials);
    add("softmax: FMNMX, FSETP, FSEL", soft.comparisons, soft2.comparisons);
    add("softmax: STS, SHFL", soft.shared + soft.shuffles, soft2.shared + soft2.shuffles);
    add("products: FFMA", all.multiply_adds - soft.multiply_adds,
        all2.multiply_adds - soft2.multiply_adds);
    add("products: LDS", all.shared - soft.shared, all2.shared - soft2.shared);
    instructions.rule();
    add("all", all.all(), all2.all());
    fmt::print("{}\n", instructions.str());

    const auto list = units(shape, count_shared_wavefronts(head_dim));
    TextTable clocks({"unit", "lanes per clock", "clocks, exp", "clocks, exp2", "saved"});
    for (const Unit& unit : list)
        clocks.add({std::string(unit.name), fmt::format("{:.0f}", unit.per_clock),
                    fmt::format("{:.0f}", unit.clocks_exp), fmt::format("{:.0f}", unit.clocks_exp2),
                    fmt::format("{:.1f} %", 100 * (1 - unit.clocks_exp2 / unit.clocks_exp))});
    fmt::print("{}", clocks.str());

    const Unit& slowest = busiest(list);
    const double saving = 1 - slowest.clocks_exp2 / slowest.clocks_exp;
    fmt::print(
        "\nBusiest: {}. The exponential unit works {:.0f} % of that time. Saved if the busiest is "
        "what the\nkernel waits for: {:.1f} %.\n",
        slowest.name, 100 * list[1].clocks_exp / slowest.clocks_exp, 100 * saving);
    program.results.extras["units"] = [&] {
        nlohmann::ordered_json rows = nlohmann::ordered_json::array();
        for (const Unit& unit : list)
            rows.push_back({{"unit", unit.name},
                            {"lanes_per_clock", unit.per_clock},
                            {"clocks_exp", unit.clocks_exp},
                            {"clocks_exp2", unit.clocks_exp2}});
        return rows;
    }();
    program.checks.at_least("exp2 issues fewer instructions: saved", all.all() - all2.all(), 1);
    program.checks.that("the exponential unit is not what binds", "< 50 % of the busiest",
                        fmt::format("{:.0f} %", 100 * list[1].clocks_exp / slowest.clocks_exp),
                        list[1].clocks_exp < 0.5 * slowest.clocks_exp);
}

}  // namespace fa
