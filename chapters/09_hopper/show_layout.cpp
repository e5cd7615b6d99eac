#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "chapters/09_hopper/experiments.h"
#include "chapters/09_hopper/layout_results.h"
#include "common/half.h"

namespace fa {
namespace {

using Tile = std::array<std::uint16_t, 64 * 64>;

/// Element r·64 + c of row r and column c: a box copies bits, whatever number they are.
Tile numbered_tile() {
    Tile tile;
    for (std::size_t i = 0; i < tile.size(); ++i) tile[i] = static_cast<std::uint16_t>(i);
    return tile;
}

/// Small whole numbers without a pattern: every product of them is exact.
int number_at(int row, int column) {
    return (row * row * 7 + row * column * 5 + column * 3 + 11) % 17 - 8;
}
Tile tile_of_numbers() {
    Tile tile;
    for (int i = 0; i < 64 * 64; ++i)
        tile[static_cast<std::size_t>(i)] =
            to_float16_bits(static_cast<float>(number_at(i / 64, i % 64)));
    return tile;
}

/// Where an element of the numbered tile lies, in bytes.
int place_of(const LayoutResults& found, int row, int column) {
    const auto* at = std::ranges::find(found.memory, row * 64 + column);
    return 2 * static_cast<int>(at - found.memory);
}

/// Whether all threads hold the elements that place_in_d() says, of both products.
bool products_are_right(const LayoutResults& found) {
    for (int t = 0; t < 128; ++t)
        for (int j = 0; j < 8; ++j)
            for (int e = 0; e < 4; ++e) {
                const auto [row, column] = place_in_d(t, j, e);
                int by_rows = 0, by_columns = 0;
                for (int depth = 0; depth < 64; ++depth) {
                    by_rows += number_at(row, depth) * number_at(column, depth);
                    by_columns += number_at(row, depth) * number_at(depth, column);
                }
                if (found.by_rows[t][j][e] != static_cast<float>(by_rows) ||
                    found.by_columns[t][j][e] != static_cast<float>(by_columns))
                    return false;
            }
    return true;
}

void print_box(const LayoutResults& found) {
    fmt::print(
        "A box of 64 rows and 64 channels, as TMA leaves it: a row takes 128 bytes, 32 banks. "
        "Which eight\nchannels lie in each of its places of 16 bytes:\n\n"
        "          place  0  1  2  3  4  5  6  7\n");
    for (int row : {0, 1, 2, 3, 7, 8, 9, 63}) {
        fmt::print("  row {:>2}       ", row);
        for (int place = 0; place < 8; ++place)
            fmt::print(" {:>2}", found.memory[row * 64 + place * 8] % 64 / 8);
        fmt::print("\n");
    }
    fmt::print(
        "\nA product finds element (row, depth) of Q or K, by_rows, and (depth, column) of V, "
        "by_columns, at byte\n\n"
        "           by_rows: row, depth              by_columns: depth, column\n");
    for (const auto& [row, column] : {std::pair{0, 0}, {1, 0}, {1, 9}, {9, 17}, {18, 63}})
        fmt::print("           ({:>2}, {:>2})  {:>6}                  ({:>2}, {:>2})  {:>6}\n", row,
                   column, place_of(found, row, column), row, column, place_of(found, row, column));
    fmt::print(
        "\nThe same byte: what is a row to one is the depth to the other. 16 deeper is {} bytes "
        "by_rows, {} bytes\nby_columns.\n\n",
        place_of(found, 0, 16), place_of(found, 16, 0));
}

void print_holders() {
    fmt::print(
        "D, 64 x N: who holds what of the first 16 columns; 13:1,2 is d[1][2] of thread 13, and "
        "its neighbour\nto the right is d[1][3].\n\n");
    for (int row : {0, 1, 7, 8, 15, 16, 32, 63}) {
        fmt::print("  row {:>2} ", row);
        for (int column = 0; column < 16; column += 2)
            for (int t = 0; t < 128; ++t)
                for (int j = 0; j < 2; ++j)
                    for (int e = 0; e < 4; e += 2)
                        if (const auto at = place_in_d(t, j, e);
                            at.row == row && at.column == column)
                            fmt::print("{:>9}", fmt::format("{}:{},{}", t, j, e));
        fmt::print("\n");
    }
    fmt::print(
        "\nA row lies with four neighbours, as in chapter 8, and a warp has 16 rows to itself.\n");
}

}  // namespace

void show_layout(Program& program) {
    print_heading("What lies where");
    const Tile numbered = numbered_tile(), numbers = tile_of_numbers();
    const LayoutResults found = probe_layout_on_executor(numbered);
    const LayoutResults multiplied = probe_layout_on_executor(numbers);
    print_box(found);
    print_holders();
    const auto exactly = [](bool right) { return right ? "exactly" : "not so"; };
    const bool right = products_are_right(multiplied);
    program.checks.that("a box times its transpose, and times itself: what each thread holds",
                        "exactly", exactly(right), right);
#ifdef FA_HOPPER_ENABLED
    if (hopper_is_here(program)) {
        const LayoutResults box = probe_layout_on_gpu(numbered);
        const LayoutResults products = probe_layout_on_gpu(numbers);
        const bool same = std::memcmp(box.memory, found.memory, sizeof box.memory) == 0 &&
                          products_are_right(products);
        program.checks.that("the same on the GPU", "exactly", exactly(same), same);
    }
#endif
}

}  // namespace fa
