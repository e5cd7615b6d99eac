#pragma once
/// @file
/// Ends a process that makes no progress: a kernel that waits for ever cannot be stopped from
/// within.

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace fa {

/// A thread that ends the process with exit status 1 and one line on stderr when what was begun
/// last takes too long.
class Watchdog {
  public:
    /// @param program stands before the line
    Watchdog(std::string program, std::chrono::milliseconds limit);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// Begins something, which ends whatever was begun before.
    void begin(std::string what);

  private:
    void watch();

    std::string program_, what_ = "the start";
    std::chrono::milliseconds limit_;
    std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
    bool over_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::thread thread_;  // last: it uses the others
};

}  // namespace fa
