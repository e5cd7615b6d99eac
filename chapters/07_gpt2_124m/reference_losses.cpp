#include "chapters/07_gpt2_124m/reference_losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace fa {

std::optional<ReferenceLosses::Distance> ReferenceLosses::distance(
    const EvaluationPlan& plan, const Evaluation& evaluation) const {
    const EvaluationPlan of_reference{targets, context, 1};
    Distance distance;
    if (plan.context != context) return std::nullopt;
    const std::int64_t common =
        std::min({plan.sequences(), of_reference.sequences(),
                  static_cast<std::int64_t>(evaluation.sequence_losses.size())});
    for (std::int64_t i = 0; i < common; ++i) {
        if (plan.length(i) != of_reference.length(i)) continue;  // a last one cut short
        const auto n = static_cast<std::size_t>(i);
        const double apart = std::abs(evaluation.sequence_losses[n] - sequence_losses[n]);
        if (!(apart <= distance.largest)) distance.largest = apart;  // NaN stays
        if (std::isnan(apart)) return Distance{apart, i + 1};
        ++distance.sequences;
    }
    if (distance.sequences == 0) return std::nullopt;
    return distance;
}

ReferenceLosses read_reference_losses(const std::filesystem::path& path) {
    std::ifstream file(path);
    if (!file || std::filesystem::is_directory(path))
        throw std::runtime_error(fmt::format("{}: cannot be opened", path.string()));
    const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object())
        throw std::runtime_error(
            fmt::format("{}: is no file of reference losses: no JSON object", path.string()));
    try {
        ReferenceLosses reference;
        reference.implementation = json.value("implementation", "");
        reference.tokens_file = json.value("tokens_file", "");
        reference.sequence_losses = json.at("per_sequence_loss_f32").get<std::vector<double>>();
        reference.context = json.value("context", std::int64_t{1024});
        const auto sequences = static_cast<std::int64_t>(reference.sequence_losses.size());
        reference.targets = json.value("targets", sequences * reference.context);
        if (const auto loss = json.find("loss"); loss != json.end() && loss->contains("bf16_eager"))
            reference.bf16_scores_loss = (*loss)["bf16_eager"].get<double>();
        if (json.contains("greedy_f32")) {
            reference.prompt = json["greedy_f32"].at("prompt").get<std::string>();
            reference.continuation =
                json["greedy_f32"].at("new_tokens").get<std::vector<std::int32_t>>();
        }
        const EvaluationPlan plan{reference.targets, reference.context, 1};
        if (reference.context < 1 || plan.sequences() != sequences)
            throw std::runtime_error(fmt::format("{} targets in sequences of {}, and {} losses",
                                                 reference.targets, reference.context, sequences));
        return reference;
    } catch (const std::exception& error) {
        throw std::runtime_error(
            fmt::format("{}: is no file of reference losses: {}", path.string(), error.what()));
    }
}

}  // namespace fa
