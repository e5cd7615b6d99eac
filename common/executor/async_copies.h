#pragma once
/// @file
/// The asynchronous copies of one thread: cp.async, as unhelpful as the hardware may be.

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace fa::executor {

/// Copies in groups, in the order in which the thread issued them. None arrives before the thread
/// waits for its group.
class AsyncCopies {
  public:
    static constexpr std::size_t BYTES = 16;

    /// Adds a copy to the group that is open.
    void add(std::size_t offset, const void* data) {
        Copy copy{offset, {}};
        std::memcpy(copy.data.data(), data, BYTES);
        copies_.push_back(copy);
    }

    /// Ends the group.
    void commit() { group_ends_.push_back(copies_.size()); }

    /// Calls `arrive(offset, data)` for all copies of all but the last `pending` groups. Copies
    /// that no group holds yet are not waited for.
    template <class Arrive>
    void wait(std::size_t pending, Arrive&& arrive) {
        if (group_ends_.size() <= pending) return;
        const std::size_t groups = group_ends_.size() - pending, end = group_ends_[groups - 1];
        for (std::size_t i = 0; i < end; ++i) arrive(copies_[i].offset, copies_[i].data.data());
        copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(end));
        group_ends_.erase(group_ends_.begin(),
                          group_ends_.begin() + static_cast<std::ptrdiff_t>(groups));
        for (std::size_t& group_end : group_ends_) group_end -= end;
    }

  private:
    struct Copy {
        std::size_t offset;
        std::array<std::byte, BYTES> data;
    };
    std::vector<Copy> copies_;
    std::vector<std::size_t> group_ends_;  ///< for each group, how many copies it and those before
};

}  // namespace fa::executor
