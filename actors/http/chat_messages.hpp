#pragma once
#include "actors/requests/prompting.hpp"

namespace troupe {

class request_fields;

/// The messages of a chat, as its template reads them: parts of text put together, arguments of calls as objects.
/// Throws field_error.
prompt_input read_chat(const request_fields& from);

}  // namespace troupe
