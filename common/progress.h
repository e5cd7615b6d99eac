#pragma once
/// @file
/// A line on stderr that says how far long work has come; silent when stderr is not a terminal.

#include <chrono>
#include <cstdint>
#include <string>

namespace fa {

/// Shows "label  37 % (24/64)  12 s left", at most ten times a second, and clears the line at the end.
class Progress {
  public:
    Progress(std::string label, std::int64_t total);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void advance(std::int64_t steps = 1);

  private:
    std::string label_;
    std::int64_t total_, done_ = 0;
    bool visible_;
    std::chrono::steady_clock::time_point start_, last_shown_;
};

}  // namespace fa
