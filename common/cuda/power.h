#pragma once
/// @file
/// The power that a GPU draws. Under load a card lowers its clock to stay within its limit, so that
/// a rate means little without the two.

#include <functional>
#include <optional>
#include <string>

namespace fa {

/// The energy that a GPU has used since its driver was loaded, memory included, by NVML: its
/// nvmlDeviceGetTotalEnergyConsumption(), in millijoules. The library is loaded at run time, for
/// machines that have none.
class EnergyCounter {
  public:
    /// Never fails: where there is no library, no such GPU, or no such counter (before Volta, or a
    /// part of a GPU), joules() is empty.
    /// @param pci_bus_id such as "0000:18:00.0"
    explicit EnergyCounter(const std::string& pci_bus_id,
                           const std::string& library = "libnvidia-ml.so.1");
    ~EnergyCounter();
    EnergyCounter(const EnergyCounter&) = delete;
    EnergyCounter& operator=(const EnergyCounter&) = delete;

    /// Energy so far, or empty if it cannot be known.
    std::optional<double> joules() const;

  private:
    void* library_ = nullptr;
    void* device_ = nullptr;
    int (*read_)(void*, unsigned long long*) = nullptr;
    int (*shut_down_)() = nullptr;
};

/// Mean power in watts while `work` is repeated, from one step of the counter to another at least
/// `seconds` later. The counter moves in steps, some tens of milliseconds apart; their moments are
/// known to about 2 ms, hence power to about 1 % for 0.4 s.
/// @param work so short that it can be called many times
/// @return empty if energy cannot be known, or does not grow: `work` may not have been called then
/// @throws what `work` throws
std::optional<double> mean_power(const EnergyCounter& counter, const std::function<void()>& work,
                                 double seconds);

/// The same for the current CUDA device; empty for 0 seconds. At its limit of power a GPU lowers
/// its clock: what is measured right behind this is measured under lasting load. @throws CudaError;
/// what `work` throws
std::optional<double> gpu_power(const std::function<void()>& work, double seconds);

/// Waits as long as the GPU was loaded for, so that what is measured next does not pay for it.
void let_cool(double seconds);

/// "612 W", or "-" if it is not known.
std::string watts(const std::optional<double>& power);

}  // namespace fa
