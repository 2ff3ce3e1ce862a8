// How errors name fields where a request of another API was turned into one of OpenAI's.
#pragma once
#include <span>
#include <string_view>

#include "actors/requests/answer_order.hpp"
#include "base/field_error.hpp"

namespace troupe {

/// What another API calls a field.
struct own_field {
  std::string_view turned_into;
  const char* name;
};

/// The same error in that API's words.
field_error in_own_words(const field_error& error, std::span<const own_field> fields);
/// For errors that are found later.
void name_own_fields(answer_order& order, std::span<const own_field> fields);

}  // namespace troupe
