// Reads the arguments of clients' commands.
#pragma once
#include <string>
#include <string_view>

#include "actors/json_dump_impl.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {

class command_fields : public detail::json_fields<json> {
 public:
  using json_fields::json_fields;
};

inline std::string text_of(const command_fields& arguments, std::string_view key) {
  const auto text = arguments.text(key);
  if (!text || text->empty()) refuse("{}: \"{}\" is missing", arguments.where(), key);
  return *text;
}

}  // namespace troupe
