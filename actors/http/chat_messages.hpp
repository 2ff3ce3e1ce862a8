#pragma once
#include "actors/requests/prompting.hpp"

namespace troupe {

class request_fields;

/// The messages of a chat in the form that templates read: texts in parts are joined, arguments of calls are objects.
/// Throws field_error.
prompt_input read_chat(const request_fields& from);

}  // namespace troupe
