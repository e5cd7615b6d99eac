/// @file
/// Built for a GPU that is not here (tests/gpu_tests.cmake): its kernel has no image for this one.
/// Prints why it could not run, which the test looks for; exit status 0 only if it ran, or if
/// skipped.

#include <cstdio>
#include <exception>

#include "common/cuda/device.h"
#include "common/cuda/device_buffer.h"
#include "common/cuda/stream.h"
#include "tests/gpu_kernels.h"

int main() {
    using namespace fa;
    if (!why_no_gpu().empty()) {
        std::printf("skipped: %s\n", why_no_gpu().c_str());
        return 0;
    }
    if (gpu_properties().compute_capability / 10 == FA_OTHER_ARCHITECTURE / 10) {
        std::printf(
            "skipped: this GPU runs code for compute capability %d, of which this was to be "
            "a lack\n",
            FA_OTHER_ARCHITECTURE);
        return 0;
    }
    try {
        const DeviceBuffer out(sizeof(float));
        const CudaStream stream;
        launch_store(out.as<float>(), 42.0f, 1, 32, 0, stream.get());
        stream.synchronize();
        std::printf("it ran\n");
        return 0;
    } catch (const std::exception& error) {
        std::printf("%s\n", error.what());
        return 1;
    }
}
