#include "common/cuda/check.h"

#include <fmt/format.h>

namespace fa {

void cuda_check(cudaError_t code, const char* call, const char* file, int line) {
    if (code == cudaSuccess) return;
    cudaGetLastError();  // forget it: the next call must not report this one's failure
    throw CudaError(code, fmt::format("{} at {}:{}: {} ({})", call, file, line,
                                      cudaGetErrorString(code), cudaGetErrorName(code)));
}

void cublas_check(cublasStatus_t status, const char* call, const char* file, int line) {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw std::runtime_error(
        fmt::format("{} at {}:{}: {}", call, file, line, cublasGetStatusString(status)));
}

}  // namespace fa
