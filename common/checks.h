#pragma once
/// @file
/// The list of checks that ends every program, like a lab sheet: goal, measured, pass.

#include <string>
#include <vector>

namespace fa {

/// One line of the lab sheet.
struct Check {
    std::string name;
    std::string goal;      ///< e.g. "<= 1e-06"
    std::string measured;  ///< e.g. "3.6e-07"
    bool pass = false;
};

/// Collects checks. Every comparison is written so that NaN fails.
class Checks {
  public:
    /// Passes iff measured <= bound.
    void at_most(std::string name, double measured, double bound);
    /// Passes iff measured >= bound.
    void at_least(std::string name, double measured, double bound);
    /// Passes iff the two are equal.
    void equal(std::string name, double measured, double expected);
    /// Any other check, in words.
    void that(std::string name, std::string goal, std::string measured, bool pass);

    const std::vector<Check>& list() const { return list_; }
    bool all_pass() const;    ///< false also when there is no check at all: nothing was shown
    std::string str() const;  ///< as a text table

  private:
    std::vector<Check> list_;
};

}  // namespace fa
