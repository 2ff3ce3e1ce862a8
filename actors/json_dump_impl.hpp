// JSON as it is sent. For .cpp files only.
#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace troupe {

/// Keys stay in the order in which they were written.
using json = nlohmann::ordered_json;

/// In one line; what is no UTF-8 becomes U+FFFD.
inline std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace troupe
