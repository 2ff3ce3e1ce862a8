// Reads the arguments of clients' commands.
#pragma once
#include <cstdint>
#include <optional>
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

  /// These throw input_error where the argument is missing; no text may be empty.
  std::string required_text(std::string_view key) const {
    const auto found = text(key);
    if (!found || found->empty()) refuse("{}: \"{}\" is missing", where(), key);
    return *found;
  }
  std::uint64_t count(std::string_view key, std::optional<std::int64_t> otherwise = {}) const {
    const auto number = has(key) ? integer(key) : otherwise;
    if (!number) refuse("{}: \"{}\" is missing", where(), key);
    if (*number < 0) refuse("{}: \"{}\" is {}: use 0 or more", where(), key, *number);
    return static_cast<std::uint64_t>(*number);
  }
};

}  // namespace troupe
