#include "chapters/09_hopper/fit_pace.h"

namespace fa {
namespace {

double misfit(std::span<const TimedLaunch> times, int multiprocessors, const TileKind& kind,
              const TilePace& pace) {
    constexpr double MOST = 1.0 / 7;
    double sum = 0;
    for (const TimedLaunch& t : times) {
        const double off = std::log(predicted_microseconds(t.problem, multiprocessors, kind, pace) /
                                    t.microseconds);
        sum += std::min(off * off, MOST * MOST);
    }
    return sum;
}

}  // namespace

TilePace fit_pace(std::span<const TimedLaunch> times, int multiprocessors, const TileKind& kind,
                  const TilePace& begin) {
    constexpr double FIRST_STEP = 0.4, LAST_STEP = 1e-3;
    TilePace best = begin;
    double least = misfit(times, multiprocessors, kind, best);
    for (double step = FIRST_STEP; step > LAST_STEP;) {
        bool better = false;
        for (double TilePace::*number :
             {&TilePace::launch, &TilePace::start, &TilePace::step, &TilePace::alone})
            for (const double factor : {1 + step, 1 / (1 + step)}) {
                TilePace other = best;
                other.*number *= factor;
                const double misfit_of_other = misfit(times, multiprocessors, kind, other);
                if (misfit_of_other >= least) continue;
                least = misfit_of_other;
                best = other;
                better = true;
            }
        if (!better) step /= 2;
    }
    return best;
}

}  // namespace fa
