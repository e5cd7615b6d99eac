#include "common/cuda/power.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "common/cuda/check.h"

namespace fa {
namespace {

// Of NVML (NVML API Reference Guide): all functions return 0 for success; a device is a pointer.
using Initialise = int (*)();
using FindDevice = int (*)(const char* pci_bus_id, void** device);

template <class Function>
Function function_of(void* library, const char* name) {
    return reinterpret_cast<Function>(dlsym(library, name));
}

/// Joins on the way out, also by an exception.
class Sampler {
  public:
    template <class Body>
    explicit Sampler(Body body)
        : thread_([this, body] {
              body(over_);
              over_ = true;
          }) {}
    ~Sampler() {
        over_ = true;
        thread_.join();
    }
    Sampler(const Sampler&) = delete;
    Sampler& operator=(const Sampler&) = delete;
    bool over() const { return over_; }

  private:
    std::atomic<bool> over_ = false;
    std::thread thread_;  // last: it uses the other
};

}  // namespace

EnergyCounter::EnergyCounter(const std::string& pci_bus_id, const std::string& library)
    : library_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    const auto initialise = function_of<Initialise>(library_, "nvmlInit_v2");
    const auto find = function_of<FindDevice>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
    shut_down_ = function_of<int (*)()>(library_, "nvmlShutdown");
    const auto read = function_of<int (*)(void*, unsigned long long*)>(
        library_, "nvmlDeviceGetTotalEnergyConsumption");
    if (!initialise || !find || !shut_down_ || !read || initialise() != 0) {
        shut_down_ = nullptr;
        return;
    }
    if (find(pci_bus_id.c_str(), &device_) == 0) read_ = read;
}

EnergyCounter::~EnergyCounter() {
    if (shut_down_ != nullptr) shut_down_();
    if (library_ != nullptr) dlclose(library_);
}

std::optional<double> EnergyCounter::joules() const {
    unsigned long long millijoules = 0;
    if (read_ == nullptr || read_(device_, &millijoules) != 0) return std::nullopt;
    return 1e-3 * static_cast<double>(millijoules);
}

std::optional<double> mean_power(const EnergyCounter& counter, const std::function<void()>& work,
                                 double seconds) {
    using Clock = std::chrono::steady_clock;
    constexpr auto EVERY = std::chrono::milliseconds(2);
    constexpr double LONGEST_STEP = 1;  // seconds; a counter that moves less often stands still
    const std::optional<double> start = counter.joules();
    if (!start) return std::nullopt;
    std::optional<double> power;
    {
        // Read on a thread of its own: the GPU must not wait for it.
        const Sampler sampler([&](const std::atomic<bool>& over) {
            const auto since = [](Clock::time_point t) {
                return std::chrono::duration<double>(Clock::now() - t).count();
            };
            const Clock::time_point begin = Clock::now();
            Clock::time_point first_step;
            double last = *start, first = 0;
            bool stepped = false;
            while (!over && since(begin) < seconds + 2 * LONGEST_STEP) {
                std::this_thread::sleep_for(EVERY);
                const std::optional<double> now = counter.joules();
                if (!now) return;
                if (*now == last) continue;
                last = *now;
                if (!stepped) {
                    stepped = true;
                    first = last;
                    first_step = Clock::now();
                } else if (const double passed = since(first_step); passed >= seconds) {
                    power = (last - first) / passed;
                    return;
                }
            }
        });
        while (!sampler.over()) work();
    }
    return power;
}

std::optional<double> gpu_power(const std::function<void()>& work, double seconds) {
    if (seconds <= 0) return std::nullopt;
    int device = 0;
    char pci_bus_id[32] = {};
    FA_CUDA_CHECK(cudaGetDevice(&device));
    FA_CUDA_CHECK(cudaDeviceGetPCIBusId(pci_bus_id, sizeof pci_bus_id, device));
    static const EnergyCounter counter(pci_bus_id);
    return mean_power(counter, work, seconds);
}

void let_cool(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

std::string watts(const std::optional<double>& power) {
    return power ? fmt::format("{:.0f} W", *power) : "-";
}

}  // namespace fa
