#pragma once
/// @file
/// A fiber on Boost.Context: a function with a stack of its own that can pause and be resumed.
/// Tells AddressSanitizer of every change of stacks, which Boost's fast path does not.

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "common/executor/fiber_stacks.h"

#if defined(__SANITIZE_ADDRESS__)
#define FA_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FA_ASAN_FIBERS 1
#endif
#endif
#ifdef FA_ASAN_FIBERS
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace fa::executor {

/// Runs a function that may pause. An exception in the function comes out of resume().
class Fiber {
  public:
    Fiber() : memory_(FiberStacks::instance().take()) {}
    ~Fiber() {
        cancel();
        fiber_ = {};  // before its stack is another's
        caller_ = {};
        old_stack();
        FiberStacks::instance().put_back(std::move(memory_));
    }
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Makes the fiber ready to run `body` from its start. `body` must outlive the run.
    void start(const std::function<void()>& body) {
        cancel();
        cancelled_ = false;
        new_stack();
        fiber_ = boost::context::fiber(std::allocator_arg, Stack{memory_.get()},
                                       [this, &body](boost::context::fiber&& caller) {
                                           caller_ = std::move(caller);
                                           entered();
                                           try {
                                               if (!cancelled_) body();
                                           } catch (const Cancelled&) {
                                           } catch (...) {
                                               error_ = std::current_exception();
                                           }
                                           leaving(/*for_good=*/true);
                                           return std::move(caller_);
                                       });
    }

    /// Lets the function run until it pauses or ends. @throws what the function threw
    void resume() {
        before_resume();
        fiber_ = std::move(fiber_).resume();
        after_resume();
        if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

    /// Called from inside: back to whoever called resume().
    void pause() {
        leaving(/*for_good=*/false);
        caller_ = std::move(caller_).resume();
        entered();
        if (cancelled_) throw Cancelled{};
    }

    /// Ends a function that has paused: what its stack holds is destroyed. (Boost's own way, a
    /// forced unwinding, would change stacks behind AddressSanitizer's back.)
    void cancel() {
        if (!fiber_) return;
        cancelled_ = true;
        resume();
    }

  private:
    struct Cancelled {};
    static constexpr std::size_t STACK_BYTES = FiberStacks::BYTES;

    /// Hands Boost the stack that the Fiber keeps, so that thousands of short runs allocate one.
    struct Stack {
        std::byte* memory;
        boost::context::stack_context allocate() {
            boost::context::stack_context context;
            context.size = STACK_BYTES;
            context.sp = memory + STACK_BYTES;
            return context;
        }
        void deallocate(boost::context::stack_context&) noexcept {}
    };

#ifdef FA_ASAN_FIBERS
    void new_stack() {
        ASAN_UNPOISON_MEMORY_REGION(memory_.get(), STACK_BYTES);
    }
    void old_stack() {
        ASAN_POISON_MEMORY_REGION(memory_.get(), STACK_BYTES);
    }
    void before_resume() {
        __sanitizer_start_switch_fiber(&outer_fake_, memory_.get(), STACK_BYTES);
    }
    void after_resume() {
        __sanitizer_finish_switch_fiber(outer_fake_, nullptr, nullptr);
    }
    void entered() {
        __sanitizer_finish_switch_fiber(inner_fake_, &outer_bottom_, &outer_size_);
    }
    void leaving(bool for_good) {
        __sanitizer_start_switch_fiber(for_good ? nullptr : &inner_fake_, outer_bottom_,
                                       outer_size_);
        if (for_good) inner_fake_ = nullptr;
    }
    void *outer_fake_ = nullptr, *inner_fake_ = nullptr;
    const void* outer_bottom_ = nullptr;
    std::size_t outer_size_ = 0;
#else
    void new_stack() {}
    void old_stack() {}
    void before_resume() {}
    void after_resume() {}
    void entered() {}
    void leaving(bool) {}
#endif

    FiberStacks::Stack memory_;  // before the fibers, which live in it
    std::exception_ptr error_;
    bool cancelled_ = false;
    boost::context::fiber caller_, fiber_;
};

}  // namespace fa::executor
