#pragma once
#include "actors/prompting.hpp"

namespace troupe {

class api_fields;

/// The messages of a chat, as its template reads them: parts of text put together, arguments of calls as objects.
/// Throws api_error.
prompt_input read_chat(const api_fields& from);

}  // namespace troupe
