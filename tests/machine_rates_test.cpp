// The rates that chapters 3 and 6 take for ceilings: what is true of them on any machine, however
// busy.

#include <doctest/doctest.h>
#include <omp.h>

#include <ctime>
#include <stdexcept>

#include "chapters/03_blocked_attention/best_rate.h"

namespace fa {
namespace {

/// Seconds for which the calling thread has had a core.
double core_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST_CASE("machine rates: threads beyond the number of cores make no machine faster") {
    constexpr double WORK = 1e-3;  // seconds of a core: less than a thread has at a time
    const auto make = [] {
        return [] {
            const double begin = core_seconds();
            while (core_seconds() - begin < WORK) {
            }
        };
    };
    const int cores = omp_get_num_procs();
    for (const int threads : {1, cores, cores + 32}) {
        CAPTURE(threads);
        const double rate = best_rate(threads, 5, WORK, make);
        CHECK(rate > 0);
        // Seconds of cores in a second; the rest is for the grain of the clock.
        CHECK(rate <= 1.2 * cores);
    }
}

TEST_CASE("machine rates: what a thread throws arrives, and no thread waits for ever") {
    const auto make = [] {
        if (omp_get_thread_num() == omp_get_num_threads() - 1) throw std::length_error("too large");
        return [] {};
    };
    CHECK_THROWS_AS(best_rate(3, 2, 1, make), std::length_error);
}

}  // namespace
}  // namespace fa
