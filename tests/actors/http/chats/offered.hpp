#pragma once
#include <memory>
#include <string>
#include <vector>

#include "actors/http/chats/tool_calls.hpp"

namespace troupe::test {

/// Functions with these names.
inline shared_offers offered(const std::vector<std::string>& names) {
  std::vector<tool_offer> all;
  for (const std::string& each : names) all.push_back({.name = each});
  return std::make_shared<const std::vector<tool_offer>>(std::move(all));
}

}  // namespace troupe::test
