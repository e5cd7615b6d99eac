#include "chapters/09_hopper/watchdog.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fa {

Watchdog::Watchdog(std::string program, std::chrono::milliseconds limit)
    : program_(std::move(program)), limit_(limit), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Watchdog::begin(std::string what) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    since_ = std::chrono::steady_clock::now();
}

void Watchdog::watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
        if (std::chrono::steady_clock::now() - since_ >= limit_) {
            std::fflush(stdout);
            fmt::print(stderr, "{}: no end after {} ms: {}\n", program_, limit_.count(), what_);
            std::fflush(stderr);
            std::_Exit(1);  // destructors would wait for the GPU
        }
        changed_.wait_until(lock, since_ + limit_);
    }
}

}  // namespace fa
