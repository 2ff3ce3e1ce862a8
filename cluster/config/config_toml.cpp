#include <algorithm>

#include <toml++/toml.h>

#include "base/error.hpp"
#include "cluster/config/config_setting.hpp"

namespace troupe::detail {
namespace {

config_place place_of(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

setting from(const toml::node& node);

setting::list from_array(const toml::array& array) {
  setting::list list;
  for (const auto& each : array) list.push_back(from(each));
  return list;
}

setting::table from_table(const toml::table& table) {
  setting::table entries;
  for (const auto& [key, value] : table)
    entries.push_back({std::string(key.str()), place_of(key.source()), from(value)});
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  return entries;
}

setting from(const toml::node& node) {
  setting read{place_of(node.source()), {}};
  if (const auto* text = node.as_string()) {
    read.content = text->get();
  } else if (const auto* whole = node.as_integer()) {
    read.content = whole->get();
  } else if (const auto* number = node.as_floating_point()) {
    read.content = number->get();
  } else if (const auto* truth = node.as_boolean()) {
    read.content = truth->get();
  } else if (const auto* array = node.as_array()) {
    read.content = from_array(*array);
  } else if (const auto* table = node.as_table()) {
    read.content = from_table(*table);
  } else {
    read.content = setting::other{"a date or time"};
  }
  return read;
}

}  // namespace

setting read_toml(std::string_view text, const std::string& label) {
  try {
    return from(toml::parse(text, label));
  } catch (const toml::parse_error& error) {
    const config_place at = place_of(error.source());
    const bool is_node = error.description().ends_with("redefine existing table 'node'");
    refuse("{}:{}:{}: no valid TOML: {}{}", label, at.line, at.column, error.description(),
           is_node ? ": write [[node]] for each" : "");
  }
}

}  // namespace troupe::detail
