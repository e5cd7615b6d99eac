#pragma once
/// @file
/// Wall-clock times of repeated runs.

#include <algorithm>
#include <chrono>
#include <vector>

namespace fa {

/// Wall-clock seconds since construction.
class Stopwatch {
  public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What repeated runs took, in seconds.
struct Timing {
    double median = 0;
    double fastest = 0;
    int runs = 0;
};

/// Runs `work` once to warm up, then at least `min_runs` times and for at least `min_seconds`.
template <class Work>
Timing time_runs(Work&& work, int min_runs, double min_seconds) {
    work();
    std::vector<double> seconds;
    const Stopwatch total;
    while (static_cast<int>(seconds.size()) < min_runs || total.seconds() < min_seconds) {
        const Stopwatch one;
        work();
        seconds.push_back(one.seconds());
    }
    std::sort(seconds.begin(), seconds.end());
    const std::size_t n = seconds.size();
    return {.median = n % 2 == 1 ? seconds[n / 2] : (seconds[n / 2 - 1] + seconds[n / 2]) / 2,
            .fastest = seconds.front(),
            .runs = static_cast<int>(n)};
}

}  // namespace fa
