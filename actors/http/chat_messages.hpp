#pragma once
#include <string>
#include <vector>

#include "actors/prompting.hpp"

namespace troupe {

class api_fields;

/// The messages of a chat, as its template reads them: parts of text put together, arguments of calls as objects.
/// Throws api_error.
prompt_input read_chat(const api_fields& from);
/// The functions that a chat's tools name, unless tool_choice is "none". Throws api_error.
std::vector<std::string> read_tool_names(const api_fields& from);

}  // namespace troupe
