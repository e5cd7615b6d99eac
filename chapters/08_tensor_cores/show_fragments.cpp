#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <string>

#include "chapters/08_tensor_cores/experiments.h"
#include "chapters/08_tensor_cores/probe_results.h"
#include "common/half.h"

namespace fa {
namespace {

/// The number of the place that a half of a register holds.
int place_in(std::uint32_t pair, bool high) {
    return static_cast<int>(
        from_float16_bits(static_cast<std::uint16_t>(high ? pair >> 16 : pair)));
}

/// For each place of the 16 × 16 tile, "lane.register" of who holds it.
struct Map {
    std::string holder[16][16];

    template <class Registers>
    explicit Map(const WarpProbe& probe, Registers registers) {
        for (std::size_t lane = 0; lane < probe.size(); ++lane)
            for (int n = 0; n < 4; ++n)
                for (bool high : {false, true}) {
                    const int place = place_in(registers(probe[lane])[n], high);
                    holder[place / 16][place % 16] = fmt::format("{}.{}", lane, n);
                }
    }

    void print(const std::string& title, bool pairs_in_rows) const {
        fmt::print("{}\n", title);
        // Two neighbours share a register: each is shown once.
        const int row_step = pairs_in_rows ? 1 : 2, column_step = pairs_in_rows ? 2 : 1;
        for (int r = 0; r < 16; r += row_step) {
            fmt::print("  row {:>2} ", r);
            for (int c = 0; c < 16; c += column_step) fmt::print("{:>6}", holder[r][c]);
            fmt::print("\n");
        }
        fmt::print("\n");
    }
};

/// The products of the tile r·16 + c with its transpose and with itself.
bool products_are_right(const WarpProbe& probe) {
    for (int lane = 0; lane < 32; ++lane)
        for (int n = 0; n < 4; ++n) {
            const int row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
            float by_k = 0, by_v = 0;
            for (int k = 0; k < 16; ++k) {
                const auto left = static_cast<float>(row * 16 + k);
                by_k += left * static_cast<float>(column * 16 + k);
                by_v += left * static_cast<float>(k * 16 + column);
            }
            const ProbeResults& own = probe[static_cast<std::size_t>(lane)];
            if (own.by_k[n] != by_k || own.by_v[n] != by_v) return false;
        }
    return true;
}

}  // namespace

void show_fragments(Program& program) {
    print_heading("Which lane holds what");
    const WarpProbe probe = probe_on_executor();
    fmt::print(
        "A tile of 16 x 16 elements through ldmatrix; 13.2 is register 2 of lane 13. Two "
        "neighbours "
        "share a\nregister: neighbours in a row, or in a column if ldmatrix transposes.\n\n");
    Map(probe, [](const ProbeResults& r) {
        return r.a;
    }).print("A (Q, P): every other column", true);
    Map(probe, [](const ProbeResults& r) {
        return r.k;
    }).print("B from rows that are its columns (K): every other column", true);
    Map(probe, [](const ProbeResults& r) {
        return r.v;
    }).print("B from rows that are its rows (V, transposed): every other row", false);
    fmt::print("C, 16 x 8: every other column\n");
    for (int r = 0; r < 16; ++r) {
        fmt::print("  row {:>2} ", r);
        for (int c = 0; c < 8; c += 2)
            fmt::print("{:>9}",
                       fmt::format("{}.{},{}", r % 8 * 4 + c / 2, r / 8 * 2, r / 8 * 2 + 1));
        fmt::print("\n");
    }
    fmt::print("\nLanes 0 to 3 hold row 0 of C, and row 0 of A: P needs no one to carry it.\n");
    program.checks.that("mma.sync on these fragments multiplies matrices", "exactly",
                        products_are_right(probe) ? "exactly" : "not so",
                        products_are_right(probe));
#ifdef FA_CUDA_ENABLED
    if (program.where() == Device::cuda) {
        const WarpProbe on_gpu = probe_on_gpu();
        const bool same = std::memcmp(&on_gpu, &probe, sizeof probe) == 0;
        program.checks.that("the GPU's lanes hold what the executor's hold", "every bit",
                            same ? "every bit" : "not so", same);
    }
#endif
}

}  // namespace fa
