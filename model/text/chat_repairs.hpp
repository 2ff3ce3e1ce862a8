// What may help where a template refuses a chat.
#pragma once
#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// A bit for each.
inline constexpr unsigned all_repairs = 0b1111;
/// Makes those of `which`, on prepared messages. False if there is nothing to be repaired by one of them.
bool apply_repairs(unsigned which, nlohmann::ordered_json& messages, nlohmann::ordered_json& tools);

/// Puts arguments of calls as the API has them, for templates that add them to a text. False if there are none.
bool close_arguments(nlohmann::ordered_json& messages);

}  // namespace troupe
