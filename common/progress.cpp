#include "common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "common/text_table.h"

namespace fa {
namespace {

/// Writes over the line that stands there. Whether it arrives matters to nobody's result, so that a
/// failure is no error: not in a destructor, and not elsewhere.
void show(const std::string& line) {
    std::fputs(("\r\033[K" + line).c_str(), stderr);
}

}  // namespace

using std::chrono::duration;
using std::chrono::steady_clock;

Progress::Progress(std::string label, std::int64_t total)
    : label_(std::move(label)),
      total_(total),
      visible_(isatty(STDERR_FILENO) == 1),
      start_(steady_clock::now()),
      last_shown_(start_) {
    if (visible_) show(fmt::format("{}  0 % (0/{})", label_, total_));
}

Progress::~Progress() {
    if (visible_) show("");
}

void Progress::advance(std::int64_t steps) {
    const std::scoped_lock lock(mutex_);
    done_ += steps;
    if (!visible_) return;
    const auto now = steady_clock::now();
    if (now - last_shown_ < std::chrono::milliseconds(100)) return;
    last_shown_ = now;
    const double spent = duration<double>(now - start_).count();
    const double share = total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 1;
    // The rest is taken to run as fast as what is done; nothing is done yet in a step of size 0.
    const std::string left = share > 0 ? human_seconds(spent * (1 - share) / share) + " left" : "";
    show(fmt::format("{}  {:.0f} % ({}/{})  {}", label_, 100 * share, done_, total_, left));
}

}  // namespace fa
