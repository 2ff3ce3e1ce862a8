#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/http/api_error.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {

using json = nlohmann::ordered_json;

/// The object that a request's body is. Throws api_error.
inline json parse_body(std::string_view body) {
  constexpr detail::json_limits limits{.depth = 64};
  try {
    json parsed = detail::parse_json_as<json>(body, "the body", limits);
    if (!parsed.is_object()) throw api_error(400, "the body is no JSON object");
    return parsed;
  } catch (const input_error& error) {
    throw api_error(400, error.what());
  }
}

inline std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Fields of a request by name and type; null counts as absent. What is of another type is refused by its name.
class api_fields {
 public:
  explicit api_fields(const json& object) : object_(object) {}

  const json* find(std::string_view key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::optional<std::string> text(std::string_view key) const {
    const json* value = find(key);
    if (!value) return {};
    if (!value->is_string()) refuse_type(key, "a text");
    return value->get<std::string>();
  }
  std::string required_text(std::string_view key) const {
    auto value = text(key);
    if (!value || value->empty()) refuse_field(key, fmt::format("{} is missing", key), "missing_required_parameter");
    return *value;
  }
  std::optional<bool> boolean(std::string_view key) const {
    const json* value = find(key);
    if (!value) return {};
    if (!value->is_boolean()) refuse_type(key, "true or false");
    return value->get<bool>();
  }
  std::optional<double> number(std::string_view key) const {
    const json* value = find(key);
    if (!value) return {};
    if (!value->is_number() || !std::isfinite(value->get<double>())) refuse_type(key, "a number");
    return value->get<double>();
  }
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t most) const {
    const json* value = find(key);
    if (!value) return {};
    const auto number = detail::to_integer(*value);
    if (!number) refuse_type(key, "a whole number");
    if (*number < least || *number > most)
      refuse_field(key, fmt::format("{} is {}: use {} to {}", key, *number, least, most), "integer_out_of_range");
    return number;
  }
  std::optional<std::int32_t> small(std::string_view key, std::int32_t least = INT32_MIN,
                                    std::int32_t most = INT32_MAX) const {
    const auto number = integer(key, least, most);
    return number ? std::optional(static_cast<std::int32_t>(*number)) : std::nullopt;
  }
  const json& object() const { return object_; }
  const json* object(std::string_view key) const {
    const json* value = find(key);
    if (value && !value->is_object()) refuse_type(key, "an object");
    return value;
  }
  const json* list(std::string_view key) const {
    const json* value = find(key);
    if (value && !value->is_array()) refuse_type(key, "a list");
    return value;
  }
  [[noreturn]] static void refuse_type(std::string_view key, std::string_view wanted) {
    refuse_field(key, fmt::format("{} should be {}", key, wanted), "invalid_type");
  }

 private:
  const json& object_;
};

}  // namespace troupe
