#pragma once
/// @file
/// Model files written by the tests: a small random GPT-2 in Hugging Face's layout, with whatever
/// is to be right or wrong about it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/dtype.h"

namespace fa::testing {

/// A tensor to be stored.
struct FileTensor {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
};

/// A config and the tensors of a model, to be changed by a test before they are written.
struct ModelFiles {
    nlohmann::json config;
    std::map<std::string, FileTensor> tensors;

    /// config.json and model.safetensors, the latter in `dtype`.
    void write(const std::filesystem::path& folder, DType dtype = DType::f32) const;
    /// Puts "transformer." before each name but lm_head's.
    void add_prefix();
};

/// A random network: 2 layers, 3 heads of 10, inner width 44, context 40, vocabulary 53. Weights
/// are large enough for every part to matter to the logits, norms' gains and all biases included.
ModelFiles small_model(std::uint64_t seed = 1);

}  // namespace fa::testing
