// The files that a key may see: its own, or all for an admin. Others look to it as if they did not exist.
#pragma once
#include <string>

#include "actors/http/api_context.hpp"

namespace troupe {

/// Throws api_error: there is no such file. `field`: the request's field that names it.
[[noreturn]] void refuse_file(const std::string& id, const char* field = "id");
/// Throws like refuse_file.
stored_file owned_file(const api_call& call, const std::string& id, const char* field = "id");
std::string owned_content(const api_call& call, const std::string& id, const char* field = "id");

}  // namespace troupe
