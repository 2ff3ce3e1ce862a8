// Values within a request and where they stand, so that refusals name the place. For .cpp files only.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "actors/requests/request_fields_impl.hpp"

namespace troupe {

/// Refers to the value.
class placed_json {
 public:
  /// `place`: "messages[2].content[0]". What stands before the first bracket is the field that refusals are about.
  placed_json(const json& value, std::string place) : value_(&value), place_(std::move(place)) {}

  const json& operator*() const { return *value_; }
  const json* operator->() const { return value_; }

  [[noreturn]] void refuse(std::string_view problem) const {
    refuse_field(place_.substr(0, place_.find('[')), fmt::format("{} {}", place_, problem), "unsupported_value");
  }
  /// `served`: what can stand there, as in "only text is".
  [[noreturn]] void refuse_type(std::string_view type, std::string_view served) const {
    refuse(fmt::format("is of the type {}: {} served here", type.substr(0, 40), served));
  }

  placed_json operator[](std::size_t index) const { return {(*value_)[index], fmt::format("{}[{}]", place_, index)}; }
  placed_json member(const char* key) const {
    if (!value_->is_object()) refuse("should be an object");
    const auto found = value_->find(key);
    if (found == value_->end()) refuse(fmt::format("has no {}", key));
    return {*found, fmt::format("{}.{}", place_, key)};
  }
  const std::string& text(const char* key) const {
    const placed_json said = member(key);
    if (!said->is_string()) refuse(fmt::format("should have a text as {}", key));
    return said->get_ref<const std::string&>();
  }

 private:
  const json* value_;
  std::string place_;
};

/// A text, or parts {"type", "text"} of these types, or {"type": "refusal", "refusal"}, in the form that chats have for
/// them. Nothing is an empty text.
inline json texts_of(const placed_json& content, std::initializer_list<std::string_view> types) {
  if (content->is_null()) return "";
  if (content->is_string()) return *content;
  if (!content->is_array()) content.refuse("should be a text or a list of parts");
  json parts = json::array();
  for (std::size_t i = 0; i < content->size(); ++i) {
    const placed_json part = content[i];
    const std::string& type = part.text("type");
    if (std::find(types.begin(), types.end(), type) == types.end()) part.refuse_type(type, "only text is");
    const char* key = type == "refusal" ? "refusal" : "text";
    parts.push_back({{"type", key}, {key, part.text(key)}});
  }
  return parts;
}

}  // namespace troupe
