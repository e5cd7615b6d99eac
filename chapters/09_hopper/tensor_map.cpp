#include "chapters/09_hopper/tensor_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "common/cuda/check.h"

namespace fa {
namespace {

/// The driver's function, by way of the runtime: programs need not link the driver, which machines
/// without a GPU lack.
decltype(&cuTensorMapEncodeTiled) encoder() {
    static const auto function = [] {
        void* entry = nullptr;
        cudaDriverEntryPointQueryResult result{};
        FA_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                                       cudaEnableDefault, &result));
        if (entry == nullptr || result != cudaDriverEntryPointSuccess)
            throw std::runtime_error(
                "the driver has no cuTensorMapEncodeTiled: it is older than "
                "CUDA 12.0");
        return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
    }();
    return function;
}

}  // namespace

// [tensor-map]
CUtensorMap tensor_map(const BoxSource& source, int rows) {
    cuuint64_t extents[4], strides[3];
    for (std::size_t i = 0; i < 4; ++i) extents[i] = static_cast<cuuint64_t>(source.extents[i]);
    for (std::size_t i = 0; i < 3; ++i) strides[i] = static_cast<cuuint64_t>(source.strides[i]) * 2;
    const cuuint32_t box[4] = {64, static_cast<cuuint32_t>(rows), 1, 1}, steps[4] = {1, 1, 1, 1};
    CUtensorMap map;
    // The kind of 16-bit number is nothing to TMA, which moves zeros and copies.
    const CUresult result = encoder()(
        &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<void*>(source.data), extents, strides,
        box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw std::runtime_error(fmt::format(
            "cuTensorMapEncodeTiled: error {} for extents {} (channels, tokens, heads, batch), "
            "strides {} (elements), boxes of {} tokens",
            static_cast<int>(result), fmt::join(source.extents, " x "),
            fmt::join(source.strides, ", "), rows));
    return map;
}
// [tensor-map]

}  // namespace fa
