#include "model/chat/runtime.hpp"

#include <algorithm>

#include "model/chat/operators.hpp"

namespace troupe::detail::jinja {

void budget::scan(const value& v) {
  if (const std::string* text = text_of(v)) {
    step(text->size() / 16);
  } else if (const sequence* list = sequence_of(v)) {
    step(list->items.size());
  } else if (const mapping* dict = mapping_of(v)) {
    step(dict->entries.size() / 4);
  }
}

void budget::built(const value& v) {
  if (const std::string* text = text_of(v)) {
    take(text->size());
  } else if (const sequence* list = sequence_of(v)) {
    take(list->items.size() * sizeof(value));
  } else if (const mapping* dict = mapping_of(v)) {
    take(dict->entries.size() * 2 * sizeof(value));
  }
}

parameters::parameters(std::string_view callee, arguments&& given, std::initializer_list<std::string_view> names,
                       std::size_t required)
    : callee_(callee), values_(names.size()), present_(names.size()) {
  if (given.positional.size() > names.size()) {
    fail("{} takes at most {} argument(s), {} were given", callee, names.size(), given.positional.size());
  }
  for (std::size_t i = 0; i < given.positional.size(); ++i) {
    values_[i] = std::move(given.positional[i]);
    present_[i] = true;
  }
  for (auto& [name, item] : given.named) {
    const auto index = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (index == names.size()) fail("{} has no argument named '{}'", callee, name);
    if (present_[index]) fail("{} got its argument '{}' twice", callee, name);
    values_[index] = std::move(item);
    present_[index] = true;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!present_[i]) fail("{} lacks its argument '{}'", callee, std::data(names)[i]);
  }
}

bool parameters::flag(std::size_t index, bool otherwise) const {
  return present_[index] ? truthy(values_[index]) : otherwise;
}

integer parameters::number(std::size_t index, integer otherwise) const {
  if (!present_[index]) return otherwise;
  const std::optional<integer> number = integer_of(values_[index]);
  if (!number) fail("{} needs a whole number here, not {}", callee_, type_name(values_[index]));
  return *number;
}

std::string parameters::text(std::size_t index, std::string_view otherwise) const {
  if (!present_[index]) return std::string(otherwise);
  const std::string* text = text_of(values_[index]);
  if (!text) fail("{} needs a string here, not {}", callee_, type_name(values_[index]));
  return *text;
}

}  // namespace troupe::detail::jinja
