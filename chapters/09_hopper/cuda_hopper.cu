#include <array>
#include <tuple>

#include "chapters/09_hopper/cuda_entries.cuh"
#include "chapters/09_hopper/cuda_hopper.h"
#include "chapters/09_hopper/hopper_host.h"

namespace fa {
namespace {

/// The sizes of some options.
template <class... Config>
constexpr auto sizes_of(const std::tuple<SizeOption<Config>...>& options) {
    return std::apply(
        [](const auto&... option) {
            return std::array{HopperSize{
                hopper_entry<OneSize<Config>>(option.name, "a size of chapter 9's last kernels"),
                hopper_resources_of<OneSize<Config>>}...};
        },
        options);
}

}  // namespace

constinit const Implementation CUDA_HOPPER =
    hopper_entry<HopperKernel>("cuda_hopper", "TMA, wgmma, roles: faster than cuDNN is the aim");

std::span<const HopperSize> hopper_sizes64_on_gpu() {
    static constexpr auto SIZES = sizes_of(options64<Rescale::rare>());
    return SIZES;
}

std::span<const HopperSize> hopper_sizes128_on_gpu() {
    static constexpr auto SIZES = sizes_of(options128<Rescale::rare>());
    return SIZES;
}

}  // namespace fa
