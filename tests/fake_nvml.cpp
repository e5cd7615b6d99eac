// Stands in for NVML in power_test.cpp: a GPU at "0000:01:00.0" that draws 250 W, and whose counter
// moves every 20 ms. FAKE_NVML says what it lacks.

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999;

int initialised = 0, gpu = 0;

bool lacks(const char* what) {
    const char* const lacking = std::getenv("FAKE_NVML");
    return lacking != nullptr && std::strcmp(lacking, what) == 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
    if (lacks("driver")) return UNKNOWN;
    ++initialised;
    return SUCCESS;
}
int nvmlShutdown() {
    --initialised;
    return SUCCESS;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, void** device) {
    if (initialised < 1 || std::strcmp(pci_bus_id, "0000:01:00.0") != 0) return NOT_FOUND;
    *device = &gpu;
    return SUCCESS;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
    if (initialised < 1 || device != &gpu || lacks("counter")) return NOT_SUPPORTED;
    const auto passed = std::chrono::steady_clock::now().time_since_epoch();
    const auto steps = std::chrono::duration_cast<std::chrono::milliseconds>(passed).count() / 20;
    *millijoules = lacks("steps") ? 7000 : static_cast<unsigned long long>(steps) * 20 * 250;
    return SUCCESS;
}

}  // extern "C"
