// Reads a request's fields by name and type, for HTTP and for lines of jobs. For .cpp files only.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/json_dump_impl.hpp"
#include "base/field_error.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// Reads a request, which must be an object. Throws input_error that begins with `where`.
inline json parse_object(std::string_view text, const std::string& where) {
  json parsed = detail::parse_json_as<json>(text, where, {.depth = 64});
  if (!parsed.is_object()) refuse("{} is no JSON object", where);
  return parsed;
}

template <class T>
void set_if(T& to, const std::optional<T>& value) {
  if (value) to = *value;
}

/// Nothing if it is no list of tokens.
inline std::optional<std::vector<token_id>> tokens_in(const json& list) {
  std::vector<token_id> tokens;
  for (const json& each : list) {
    const auto token = detail::to_integer(each);
    if (!token || *token < 0 || *token > INT32_MAX) return {};
    tokens.push_back(static_cast<token_id>(*token));
  }
  return tokens;
}

/// Fields of a request by name and type; null counts as absent. A field of the wrong type is refused with its name.
class request_fields {
 public:
  explicit request_fields(const json& object) : object_(object) {}

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
    if (!value || value->empty()) refuse_missing(key);
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
  std::optional<std::vector<token_id>> tokens(std::string_view key) const {
    const json* value = list(key);
    if (!value) return {};
    auto tokens = tokens_in(*value);
    if (!tokens) refuse_type(key, "a list of tokens");
    return tokens;
  }
  [[noreturn]] static void refuse_missing(std::string_view key) {
    refuse_field(key, fmt::format("{} is missing", key), "missing_required_parameter");
  }
  [[noreturn]] static void refuse_type(std::string_view key, std::string_view wanted) {
    refuse_field(key, fmt::format("{} should be {}", key, wanted), "invalid_type");
  }

 private:
  const json& object_;
};

}  // namespace troupe
