#include "actors/http/own_fields.hpp"

#include <algorithm>

namespace troupe {
namespace {

const own_field* find_field(std::span<const own_field> fields, std::string_view turned_into) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const auto& each) { return each.turned_into == turned_into; });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

field_error in_own_words(const field_error& error, std::span<const own_field> fields) {
  const own_field* own = find_field(fields, error.field());
  if (!own) return error;
  std::string said = error.what();
  if (said.starts_with(own->turned_into)) said.replace(0, own->turned_into.size(), own->name);
  return field_error(own->name, said, error.code());
}

void name_own_fields(answer_order& order, std::span<const own_field> fields) {
  const auto rename = [&](auto& field) {
    if (const own_field* own = find_field(fields, field)) field = own->name;
  };
  for (prompt_input& prompt : order.prompts) rename(prompt.field);
  rename(order.form_field);
}

}  // namespace troupe
