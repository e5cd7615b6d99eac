#pragma once
/// @file
/// Streams and events that free themselves.

#include <cuda_runtime_api.h>

#include <utility>

#include "common/cuda/check.h"

namespace fa {

/// A stream of its own, which does not wait for the default stream.
class CudaStream {
  public:
    CudaStream() { FA_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~CudaStream() { cudaStreamDestroy(stream_); }
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;

    cudaStream_t get() const { return stream_; }
    /// Waits for all work, and reports the first error among it. @throws CudaError
    void synchronize() const { FA_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

  private:
    cudaStream_t stream_ = nullptr;
};

/// A point in a stream's time.
class CudaEvent {
  public:
    CudaEvent() { FA_CUDA_CHECK(cudaEventCreate(&event_)); }
    ~CudaEvent() {
        if (event_) cudaEventDestroy(event_);
    }
    CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    CudaEvent& operator=(CudaEvent&& other) noexcept {
        std::swap(event_, other.event_);
        return *this;
    }

    /// Puts the event behind all that was given to the stream so far.
    void record(const CudaStream& stream) { FA_CUDA_CHECK(cudaEventRecord(event_, stream.get())); }
    cudaEvent_t get() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

/// Seconds between two events that have happened. @throws CudaError
inline double seconds_between(const CudaEvent& start, const CudaEvent& stop) {
    float milliseconds = 0;
    FA_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()));
    return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace fa
