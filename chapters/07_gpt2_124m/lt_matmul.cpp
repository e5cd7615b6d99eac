#include "chapters/07_gpt2_124m/lt_matmul.h"

#include <cublasLt.h>
#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "common/cuda/check.h"
#include "common/cuda/device_buffer.h"

namespace fa {
namespace {

/// What NVIDIA recommends for Hopper; older GPUs need less.
constexpr std::size_t WORKSPACE_BYTES = 32 << 20;

cudaDataType_t cuda_type(DType dtype) {
    switch (dtype) {
        case DType::f32: return CUDA_R_32F;
        case DType::f16: return CUDA_R_16F;
        case DType::bf16: return CUDA_R_16BF;
    }
    throw std::logic_error("unknown element type");
}

/// Owns one of cuBLASLt's descriptors.
template <class Descriptor, cublasStatus_t (*DESTROY)(Descriptor)>
class Owned {
  public:
    Owned() = default;
    ~Owned() {
        if (descriptor_) DESTROY(descriptor_);
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    Descriptor* address() { return &descriptor_; }
    operator Descriptor() const { return descriptor_; }

  private:
    Descriptor descriptor_ = nullptr;
};

/// A shape and what it is computed with.
struct Plan {
    Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> operation;
    Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> weight, x, result;
    cublasLtMatmulAlgo_t algorithm{};
};

using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, WeightLayout, Epilogue>;

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
         const Value& value) {
    FA_CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof value));
}

void make_layout(cublasLtMatrixLayout_t* layout, cudaDataType_t type, std::int64_t rows,
                 std::int64_t columns) {
    FA_CUBLAS_CHECK(cublasLtMatrixLayoutCreate(layout, type, static_cast<std::uint64_t>(rows),
                                               static_cast<std::uint64_t>(columns), rows));
}

}  // namespace

struct LtMatmul::State {
    DType dtype;
    cublasLtHandle_t handle = nullptr;
    DeviceBuffer workspace{WORKSPACE_BYTES};
    std::map<Key, Plan> plans;

    explicit State(DType type) : dtype(type) { FA_CUBLAS_CHECK(cublasLtCreate(&handle)); }
    ~State() { cublasLtDestroy(handle); }

    /// cuBLASLt counts columns first: our row-major x·W is its Wᵀ·xᵀ, [out, rows].
    Plan& plan(const LtLinear& l) {
        const auto [entry, is_new] =
            plans.try_emplace(Key{l.rows, l.in, l.out, l.layout, l.epilogue});
        Plan& plan = entry->second;
        if (!is_new) return plan;
        try {
            fill(plan, l);
        } catch (...) {
            plans.erase(entry);
            throw;
        }
        return plan;
    }

    void fill(Plan& plan, const LtLinear& l) {
        const cudaDataType_t type = cuda_type(dtype);
        FA_CUBLAS_CHECK(
            cublasLtMatmulDescCreate(plan.operation.address(), CUBLAS_COMPUTE_32F, CUDA_R_32F));
        if (l.layout == WeightLayout::out_in)
            set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
        set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
            l.epilogue == Epilogue::none        ? CUBLASLT_EPILOGUE_DEFAULT
            : l.epilogue == Epilogue::bias_gelu ? CUBLASLT_EPILOGUE_GELU_BIAS
                                                : CUBLASLT_EPILOGUE_BIAS);
        if (l.epilogue != Epilogue::none)  // alignment of the pointer counts in the choice
            set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, l.bias);
        if (l.layout == WeightLayout::in_out)
            make_layout(plan.weight.address(), type, l.out, l.in);
        else
            make_layout(plan.weight.address(), type, l.in, l.out);
        make_layout(plan.x.address(), type, l.in, l.rows);
        make_layout(plan.result.address(), type, l.out, l.rows);

        Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
        FA_CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(preference.address()));
        const std::size_t bytes = WORKSPACE_BYTES;
        FA_CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes));
        cublasLtMatmulHeuristicResult_t found{};
        int count = 0;
        FA_CUBLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(handle, plan.operation, plan.weight, plan.x,
                                                       plan.result, plan.result, preference, 1,
                                                       &found, &count));
        if (count == 0)
            throw std::runtime_error(
                fmt::format("cuBLASLt has no algorithm for {}×{} · {}×{} in {}", l.rows, l.in, l.in,
                            l.out, name_of(dtype)));
        plan.algorithm = found.algo;
    }
};

LtMatmul::LtMatmul(DType dtype) : state_(std::make_unique<State>(dtype)) {}
LtMatmul::~LtMatmul() = default;

void LtMatmul::run(const LtLinear& l, cudaStream_t stream) {
    if (l.rows == 0) return;
    Plan& plan = state_->plan(l);
    if (l.epilogue != Epilogue::none)
        set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, l.bias);
    const float one = 1.0f, keep = l.epilogue == Epilogue::bias_add ? 1.0f : 0.0f;
    FA_CUBLAS_CHECK(cublasLtMatmul(state_->handle, plan.operation, &one, l.weight, plan.weight, l.x,
                                   plan.x, &keep, l.result, plan.result, l.result, plan.result,
                                   &plan.algorithm, state_->workspace.data(), WORKSPACE_BYTES,
                                   stream));
}

}  // namespace fa
