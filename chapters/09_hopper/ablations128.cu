#include "chapters/09_hopper/variant_on_gpu.cuh"

namespace fa {

void for_each_hopper_variant128_on_gpu(const std::function<void(const HopperVariant&)>& use) {
    for_each_hopper_variant128(
        [&]<class Config>(std::string_view name) { use(variant_on_gpu<Config>(name)); });
}

}  // namespace fa
