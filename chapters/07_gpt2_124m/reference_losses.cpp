#include "chapters/07_gpt2_124m/reference_losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "chapters/07_gpt2_124m/json_keys.h"
#include "common/mapped_file.h"
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

/// More than any file of losses counts, and so few that the product of two does not overflow.
constexpr std::int64_t LARGEST_COUNT = std::int64_t{1} << 31;

/// A file beside reference.json, and no other: the file must not lead out of its folder, nor hold
/// what could act on a terminal. @throws std::runtime_error
std::string plain_file_name(const JsonKeys& keys, const char* key) {
    const std::string name = keys.text(key, "");
    const bool plain =
        std::filesystem::path(name).filename() == name && name != "." && name != ".." &&
        std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (!plain || printable_lines(name) != name) keys.refuse(key, "not the name of a file");
    return name;
}

}  // namespace

ReferenceLosses read_reference_losses(const std::filesystem::path& path) {
    const MappedFile file(path);
    const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    const JsonKeys keys(text, path.string());
    ReferenceLosses reference;
    reference.implementation = keys.text("implementation", "");
    reference.tokens_file = plain_file_name(keys, "tokens_file");
    reference.sequence_losses = keys.numbers("per_sequence_loss_f32");
    reference.context = keys.count("context", LARGEST_COUNT, 1024);
    const auto sequences = static_cast<std::int64_t>(reference.sequence_losses.size());
    reference.targets = keys.count("targets", LARGEST_COUNT, sequences * reference.context);
    if (const auto loss = keys.object("loss"))
        reference.bf16_scores_loss = loss->number("bf16_eager");
    if (const auto greedy = keys.object("greedy_f32")) {
        reference.prompt = greedy->text("prompt");
        reference.continuation =
            greedy->ids("new_tokens", std::numeric_limits<std::int32_t>::max());
    }
    const EvaluationPlan plan{reference.targets, reference.context, 1};
    if (plan.sequences() != sequences)
        throw std::runtime_error(fmt::format(
            "{}: \"targets\" is {} and \"context\" {}, which makes {} sequences; "
            "\"per_sequence_loss_f32\" has {} losses",
            path.string(), reference.targets, reference.context, plan.sequences(), sequences));
    return reference;
}

}  // namespace fa
