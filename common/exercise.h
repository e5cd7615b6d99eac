#pragma once
/// @file
/// What the checks of exercises are written with: invariants that a reader's code must keep, and
/// for the first that is broken, a hint.

#include <fmt/format.h>

#include <exception>
#include <functional>
#include <string>
#include <utility>

namespace fa {

/// Judges one exercise and says what it found.
class Exercise {
  public:
    explicit Exercise(const std::string& title) { fmt::print("{}\n", title); }

    /// Looks whether an invariant holds. After the first that does not, the others are not tried:
    /// they would only repeat it.
    /// @param name what must hold, in words
    /// @param find returns what was found against it, with the numbers; nothing if it holds. What
    ///             it throws counts as found.
    /// @param hint where to look
    void invariant(const std::string& name, const std::function<std::string()>& find,
                   const std::string& hint) {
        if (broken_) return;
        std::string found;
        try {
            found = find();
        } catch (const std::exception& error) {
            found = error.what();
        }
        broken_ = !found.empty();
        fmt::print("  {}  {}\n", broken_ ? "broken" : "holds ", name);
        if (broken_) fmt::print("          found: {}\n          hint:  {}\n", found, hint);
    }

    /// The program's exit status: 0 if all invariants held, 1 if not.
    int finish() const {
        fmt::print("{}\n", broken_ ? "Not solved yet." : "Solved.");
        return broken_ ? 1 : 0;
    }

  private:
    bool broken_ = false;
};

}  // namespace fa
