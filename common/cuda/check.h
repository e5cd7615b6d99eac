#pragma once
/// @file
/// Every CUDA and cuBLAS call of the course goes through FA_CUDA_CHECK or FA_CUBLAS_CHECK: a
/// failure becomes an exception that names the call, the place and the reason, and the runtime's
/// error state is clean afterwards.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace fa {

/// A CUDA call failed: "cudaMalloc(&p, n) at file:line: out of memory (2)".
class CudaError : public std::runtime_error {
  public:
    CudaError(cudaError_t code, const std::string& what) : std::runtime_error(what), code_(code) {}
    cudaError_t code() const { return code_; }

  private:
    cudaError_t code_;
};

/// Throws if `code` is not cudaSuccess, after clearing the error that the runtime remembers.
/// @throws CudaError
void cuda_check(cudaError_t code, const char* call, const char* file, int line);

/// As cuda_check(), for cuBLAS. @throws std::runtime_error
void cublas_check(cublasStatus_t status, const char* call, const char* file, int line);

}  // namespace fa

/// Throws CudaError with call, file and line unless the call of the CUDA runtime succeeded.
#define FA_CUDA_CHECK(call) ::fa::cuda_check((call), #call, __FILE__, __LINE__)
/// As FA_CUDA_CHECK, for cuBLAS.
#define FA_CUBLAS_CHECK(call) ::fa::cublas_check((call), #call, __FILE__, __LINE__)
