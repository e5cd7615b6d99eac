#pragma once
/// @file
/// Memory for the stacks of fibers, kept from one launch to the next.

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fa::executor {

/// Stacks that no fiber has at the moment. Freed and allocated anew they would come from the system
/// at every launch, page by page, which took longer than many a small kernel: what is kept is as
/// many stacks as were ever in use at once.
class FiberStacks {
  public:
    static constexpr std::size_t BYTES = 256 * 1024;  ///< of a stack
    using Stack = std::unique_ptr<std::byte[]>;       ///< its lowest byte first

    /// Those of the process.
    static FiberStacks& instance() {
        static FiberStacks stacks;
        return stacks;
    }

    /// A stack that is free, or a new one; of any content. @throws std::bad_alloc
    Stack take() {
        const std::lock_guard lock(mutex_);
        if (free_.empty()) {
            free_.reserve(++made_);  // so that putting it back cannot fail
            return Stack(new std::byte[BYTES]);
        }
        Stack stack = std::move(free_.back());
        free_.pop_back();
        return stack;
    }

    /// Takes back a stack that take() gave.
    void put_back(Stack stack) noexcept {
        const std::lock_guard lock(mutex_);
        free_.push_back(std::move(stack));
    }

  private:
    std::mutex mutex_;
    std::vector<Stack> free_;
    std::size_t made_ = 0;
};

}  // namespace fa::executor
