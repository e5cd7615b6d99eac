#include "chapters/07_gpt2_124m/json_keys.h"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "common/printable.h"

namespace fa {
namespace {

using Json = nlohmann::json;

/// A number above the range of int64 is stored unsigned and would wrap in get<int64>().
bool is_whole(const Json& value, std::int64_t least, std::int64_t most) {
    return value.is_number_integer() && value.get<double>() >= static_cast<double>(least) &&
           value.get<double>() <= static_cast<double>(most);
}

std::string quoted(const char* key) {
    return fmt::format("\"{}\"", key);
}

}  // namespace

JsonKeys::JsonKeys(std::string_view text, std::string source) : source_(std::move(source)) {
    try {
        json_ = Json::parse(text);
    } catch (const Json::parse_error& error) {
        throw std::runtime_error(fmt::format("{}: no JSON, at byte {}", source_, error.byte));
    } catch (const Json::out_of_range&) {
        throw std::runtime_error(fmt::format("{}: a number does not fit into 64 bits", source_));
    }
    if (!json_.is_object()) throw std::runtime_error(fmt::format("{}: no JSON object", source_));
}

JsonKeys::JsonKeys(Json json, std::string source)
    : json_(std::move(json)), source_(std::move(source)) {}

bool JsonKeys::has(const char* key) const {
    const auto found = json_.find(key);
    return found != json_.end() && !found->is_null();
}

const Json& JsonKeys::at(const char* key) const {
    if (!has(key)) throw std::runtime_error(fmt::format("{}: no \"{}\"", source_, key));
    return json_.at(key);
}

void JsonKeys::refuse_value(const std::string& where, const Json& value,
                            const std::string& why) const {
    // Text as it is, in its quotes; of all else the JSON, whose quotes are its own.
    const std::string shown = value.is_string()       ? printable(value.get<std::string>())
                              : value.is_structured() ? value.type_name()
                                                      : value.dump();
    throw std::runtime_error(fmt::format("{}: {} is {}, {}", source_, where, shown, why));
}

void JsonKeys::refuse(const char* key, const std::string& why) const {
    refuse_value(quoted(key), json_.at(key), why);
}

std::int64_t JsonKeys::count(const char* key, std::int64_t most) const {
    const Json& value = at(key);
    if (!is_whole(value, 1, most)) refuse(key, fmt::format("not an integer from 1 to {}", most));
    return value.get<std::int64_t>();
}

std::int64_t JsonKeys::count(const char* key, std::int64_t most, std::int64_t otherwise) const {
    return has(key) ? count(key, most) : otherwise;
}

bool JsonKeys::flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!at(key).is_boolean()) refuse(key, "neither true nor false");
    return at(key).get<bool>();
}

std::string JsonKeys::text(const char* key) const {
    if (!at(key).is_string()) refuse(key, "not a string");
    return at(key).get<std::string>();
}

std::string JsonKeys::text(const char* key, const std::string& otherwise) const {
    return has(key) ? text(key) : otherwise;
}

std::optional<double> JsonKeys::number(const char* key) const {
    if (!has(key)) return std::nullopt;
    if (!at(key).is_number()) refuse(key, "not a number");
    return at(key).get<double>();
}

const Json& JsonKeys::list(const char* key, const char* of) const {
    const Json& value = at(key);
    if (!value.is_array()) refuse(key, fmt::format("not a list of {}", of));
    return value;
}

std::vector<double> JsonKeys::numbers(const char* key) const {
    std::vector<double> numbers;
    for (const Json& value : list(key, "numbers")) {
        if (!value.is_number())
            refuse_value(fmt::format("{}[{}]", quoted(key), numbers.size()), value, "not a number");
        numbers.push_back(value.get<double>());
    }
    return numbers;
}

std::vector<std::int32_t> JsonKeys::ids(const char* key, std::int32_t most) const {
    std::vector<std::int32_t> ids;
    for (const Json& value : list(key, "token ids")) {
        if (!is_whole(value, 0, most))
            refuse_value(fmt::format("{}[{}]", quoted(key), ids.size()), value,
                         fmt::format("not an integer from 0 to {}", most));
        ids.push_back(value.get<std::int32_t>());
    }
    return ids;
}

std::optional<JsonKeys> JsonKeys::object(const char* key) const {
    if (!has(key)) return std::nullopt;
    if (!at(key).is_object()) refuse(key, "not an object");
    return JsonKeys(at(key), fmt::format("{}, in {}", source_, quoted(key)));
}

}  // namespace fa
