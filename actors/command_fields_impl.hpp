// Reads the arguments of clients' commands.
#pragma once
#include <string>
#include <string_view>

#include "actors/json_dump_impl.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {

namespace detail {
struct parsed_arguments {
  json parsed;
};
}  // namespace detail

class command_fields : detail::parsed_arguments, public detail::json_fields<json> {
 public:
  /// `arguments`: a JSON object. `where`: how errors call it. Throws input_error.
  command_fields(std::string_view arguments, const std::string& where)
      : parsed_arguments{detail::parse_json_as<json>(arguments, where)}, json_fields(parsed, where) {}
  command_fields(const command_fields&) = delete;  // the fields refer to `parsed`
  command_fields& operator=(const command_fields&) = delete;
};

inline std::string text_of(const command_fields& arguments, std::string_view key) {
  const auto text = arguments.text(key);
  if (!text || text->empty()) refuse("{}: \"{}\" is missing", arguments.where(), key);
  return *text;
}

}  // namespace troupe
