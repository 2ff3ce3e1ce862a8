// A TOML file as plain data, every value with its place. Only config_toml.cpp sees the TOML library.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cluster/config/config.hpp"

namespace troupe::detail {

struct setting_entry;

struct setting {
  struct other {
    std::string kind;  ///< "a date"
  };
  using list = std::vector<setting>;
  using table = std::vector<setting_entry>;  ///< in the order of the file
  config_place place;
  std::variant<std::string, std::int64_t, double, bool, list, table, other> content;
};

struct setting_entry {
  std::string key;
  config_place place;  ///< of the key
  setting value;
};

/// The file's outermost table. Throws input_error, `label:line:column: …`.
setting read_toml(std::string_view text, const std::string& label);

}  // namespace troupe::detail
