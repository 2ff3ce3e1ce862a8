// Turns the body of POST /v1/responses into that of a chat that asks the same. For .cpp files only.
#pragma once
#include "actors/requests/request_fields_impl.hpp"

namespace troupe {

/// Sampling fields keep their names. Throws field_error.
json chat_of_response(const request_fields& from);
/// "disabled" where nothing is said.
std::string truncation_of(const request_fields& from);

}  // namespace troupe
