#pragma once
/// @file
/// How much work all threads together do in a second.

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>

namespace fa {

/// Work per second of all threads: the best of `rounds` rounds that all threads start together. A
/// round lasts from the first thread's start to the last one's end: where there are more threads
/// than cores, some have finished before others begin, and the clock of any one thread misses them.
/// Each thread makes its data by `make()`, in memory near it, and calls the result.
/// @param work_per_round of each thread, in any unit
/// @throws what make() or the first of its calls throws, in whichever thread
template <class Make>
double best_rate(int threads, int rounds, double work_per_round, Make&& make) {
    using Clock = std::chrono::steady_clock;
    double best = 0;
    Clock::time_point begin = Clock::time_point::max(), end = Clock::time_point::min();
    std::exception_ptr error;  // none may leave a parallel region
#pragma omp parallel num_threads(threads)
    {
        std::optional<decltype(make())> work;
        try {
            work.emplace(make());
            (*work)();  // warm up
        } catch (...) {
#pragma omp critical
            error = std::current_exception();
        }
#pragma omp barrier
        for (int round = 0; !error && round < rounds; ++round) {
#pragma omp barrier
            const Clock::time_point own_begin = Clock::now();
            (*work)();
            const Clock::time_point own_end = Clock::now();
#pragma omp critical
            {
                begin = std::min(begin, own_begin);
                end = std::max(end, own_end);
            }
#pragma omp barrier
#pragma omp master
            {
                const double seconds = std::chrono::duration<double>(end - begin).count();
                // OpenMP may have given fewer than were asked for.
                best = std::max(best, omp_get_num_threads() * work_per_round / seconds);
                begin = Clock::time_point::max();
                end = Clock::time_point::min();
            }
        }
    }
    if (error) std::rethrow_exception(error);
    return best;
}

}  // namespace fa
