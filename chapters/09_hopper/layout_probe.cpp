#include "chapters/09_hopper/layout_probe.h"

#include "common/executor/executor.h"

namespace fa {

LayoutResults probe_layout_on_executor(std::span<const std::uint16_t> tile) {
    LayoutResults results{};
    alignas(16) std::uint16_t elements[64 * 64];
    std::ranges::copy(tile.first(64 * 64), elements);
    const TensorMap map = executor::make_executor_map(
        static_cast<const void*>(elements), {64, 64, 1, 1}, {64, 64 * 64, 64 * 64}, /*rows=*/64);
    // Words are kept apart from the elements that they hold two of.
    std::uint32_t words[64 * 64 / 2];
    const GlobalPointer<std::uint32_t> memory(words, 64 * 64 / 2);
    const GlobalPointer<float> by_rows(&results.by_rows[0][0][0], 128 * 32);
    const GlobalPointer<float> by_columns(&results.by_columns[0][0][0], 128 * 32);
    executor::run({1}, {128}, PROBE_SHARED_BYTES,
                  [&] { probe_layout(map, memory, by_rows, by_columns); });
    std::memcpy(results.memory, words, sizeof words);
    return results;
}

}  // namespace fa
