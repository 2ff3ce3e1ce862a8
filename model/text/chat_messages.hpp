#pragma once
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// Makes messages what templates read, whoever sent them: parts of text put together, arguments of calls as objects,
/// thoughts as "reasoning_content", "developer" as "system". Throws input_error that begins with "messages".
void prepare_messages(nlohmann::ordered_json& messages);

/// One user message, and a system message before it if `system` is not empty.
nlohmann::ordered_json chat_of(std::string_view system, std::string_view message);

}  // namespace troupe
