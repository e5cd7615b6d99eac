#include "common/cuda/cublas.h"

#include "common/cuda/check.h"

namespace fa {
namespace {

/// What NVIDIA recommends for Hopper; smaller GPUs need less.
constexpr std::size_t WORKSPACE_BYTES = 32 << 20;

class Handle {
  public:
    Handle() {
        FA_CUBLAS_CHECK(cublasCreate(&handle_));
        FA_CUDA_CHECK(cudaMalloc(&workspace_, WORKSPACE_BYTES));
    }
    ~Handle() {
        cudaFree(workspace_);
        cublasDestroy(handle_);
    }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;

    cublasHandle_t on(cudaStream_t stream) {
        FA_CUBLAS_CHECK(cublasSetStream(handle_, stream));  // resets the workspace
        FA_CUBLAS_CHECK(cublasSetWorkspace(handle_, workspace_, WORKSPACE_BYTES));
        FA_CUBLAS_CHECK(cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH));
        return handle_;
    }

  private:
    cublasHandle_t handle_ = nullptr;
    void* workspace_ = nullptr;
};

}  // namespace

cublasHandle_t cublas_handle(cudaStream_t stream) {
    thread_local Handle handle;
    return handle.on(stream);
}

}  // namespace fa
