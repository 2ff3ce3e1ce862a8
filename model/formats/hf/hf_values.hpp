// Values of config.json that come in one form often.
#pragma once
#include <cstdint>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/formats/json_input.hpp"

namespace troupe::detail {

/// These two bound sizes loosely: check(model_config) knows closer bounds.
std::int64_t positive(const json_fields<nlohmann::json>& config, std::string_view key, std::int64_t otherwise);
std::int64_t size_or_none(const json_fields<nlohmann::json>& config, std::string_view key);
float factor(const json_fields<nlohmann::json>& config, std::string_view key, double otherwise = 1.0);
/// Of features that would change the result and that nothing here computes.
void refuse_unless(const json_fields<nlohmann::json>& config, std::string_view key, bool wanted);

}  // namespace troupe::detail
