#include "chapters/07_gpt2_124m/reference_losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "common/printable.h"

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

namespace {

using Json = nlohmann::json;

/// More than any file of losses counts, and so few that the product of two does not overflow.
constexpr std::int64_t LARGEST_COUNT = std::int64_t{1} << 31;

/// A count of at least 1. @throws std::runtime_error
std::int64_t count_at(const Json& json, const char* key) {
    const Json& value = json.at(key);
    // A number above the range of int64 is stored unsigned and would wrap in get<int64>().
    if (!value.is_number_integer() || value.get<double>() < 1 ||
        value.get<double>() > static_cast<double>(LARGEST_COUNT))
        throw std::runtime_error(fmt::format("\"{}\" is {}, not an integer from 1 to {}", key,
                                             value.is_number() ? value.dump() : value.type_name(),
                                             LARGEST_COUNT));
    return value.get<std::int64_t>();
}

/// A file beside reference.json, and no other: the file must not lead out of its folder, nor hold
/// what could act on a terminal. @throws std::runtime_error
std::string plain_file_name(const std::string& name) {
    const bool plain =
        std::filesystem::path(name).filename() == name && name != "." && name != ".." &&
        std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (!plain || printable_lines(name) != name)
        throw std::runtime_error(
            fmt::format("\"tokens_file\" is {}, not the name of a file", printable(name)));
    return name;
}

std::vector<std::int32_t> token_ids(const Json& list) {
    for (const Json& id : list)
        if (!id.is_number_integer() || id.get<double>() < 0 || id.get<double>() > 0x7fffffff)
            throw std::runtime_error("\"new_tokens\" holds what is no token id");
    return list.get<std::vector<std::int32_t>>();
}

}  // namespace

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
        reference.tokens_file = plain_file_name(json.value("tokens_file", ""));
        reference.sequence_losses = json.at("per_sequence_loss_f32").get<std::vector<double>>();
        reference.context = json.contains("context") ? count_at(json, "context") : 1024;
        const auto sequences = static_cast<std::int64_t>(reference.sequence_losses.size());
        reference.targets =
            json.contains("targets") ? count_at(json, "targets") : sequences * reference.context;
        if (const auto loss = json.find("loss"); loss != json.end() && loss->contains("bf16_eager"))
            reference.bf16_scores_loss = (*loss)["bf16_eager"].get<double>();
        if (json.contains("greedy_f32")) {
            reference.prompt = json["greedy_f32"].at("prompt").get<std::string>();
            reference.continuation = token_ids(json["greedy_f32"].at("new_tokens"));
        }
        const EvaluationPlan plan{reference.targets, reference.context, 1};
        if (plan.sequences() != sequences)
            throw std::runtime_error(fmt::format("{} targets in sequences of {}, and {} losses",
                                                 reference.targets, reference.context, sequences));
        return reference;
    } catch (const std::exception& error) {
        throw std::runtime_error(
            fmt::format("{}: is no file of reference losses: {}", path.string(), error.what()));
    }
}

}  // namespace fa
