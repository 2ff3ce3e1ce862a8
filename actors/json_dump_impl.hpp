// How JSON is written for sending. For .cpp files only.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace troupe {

/// Keys stay in the order in which they were written.
using json = nlohmann::ordered_json;

/// On one line; bytes that are no UTF-8 become U+FFFD.
inline std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace troupe
