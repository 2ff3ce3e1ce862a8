#pragma once
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// Some models' templates expect tools and prepared messages in ways of their own, by which they are told apart:
/// changes both to what the template with this source can write.
void adapt_to(const std::string& source, nlohmann::ordered_json& tools, nlohmann::ordered_json& messages);

}  // namespace troupe
