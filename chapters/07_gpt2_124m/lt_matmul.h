#pragma once
/// @file
/// Linear layers on the GPU by cuBLASLt, with what follows the product fused into it.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "common/dtype.h"

namespace fa {

/// What cuBLASLt does with x·W before it stores it.
enum class Epilogue {
    none,       ///< out = x·W
    bias,       ///< out = x·W + b
    bias_gelu,  ///< out = gelu_tanh(x·W + b)
    bias_add    ///< out = out + x·W + b, the residual connection
};

/// How the matrix of weights lies in memory.
enum class WeightLayout {
    in_out,  ///< [in, out], as GPT-2's Conv1D
    out_in   ///< [out, in], as the embedding that serves as the output layer
};

/// One linear layer applied to `rows` tokens. All pointers are to device memory, 16-byte aligned.
struct LtLinear {
    std::int64_t rows = 0, in = 0, out = 0;
    WeightLayout layout = WeightLayout::in_out;
    Epilogue epilogue = Epilogue::none;
    const void* x = nullptr;       ///< [rows, in]
    const void* weight = nullptr;  ///< [in, out] or [out, in]
    const void* bias = nullptr;    ///< [out]; unused with Epilogue::none
    void* result = nullptr;        ///< [rows, out]
};

/// Products in one element type, sums in fp32 (no TF32). Remembers the algorithm that cuBLASLt's
/// heuristic chose for each shape.
class LtMatmul {
  public:
    /// @throws std::runtime_error if cuBLASLt cannot start, OutOfDeviceMemory
    explicit LtMatmul(DType dtype);
    ~LtMatmul();
    LtMatmul(const LtMatmul&) = delete;
    LtMatmul& operator=(const LtMatmul&) = delete;

    /// @throws std::runtime_error if cuBLASLt has no algorithm for the shape or refuses
    void run(const LtLinear& linear, cudaStream_t stream);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace fa
