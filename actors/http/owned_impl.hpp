// What a key may see: its own files and jobs, or all for an admin. Others look to it as if they did not exist. For .cpp
// files only.
#pragma once
#include <string>

#include "actors/http/api_context.hpp"
#include "actors/http/api_error.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {

[[noreturn]] inline void refuse_file(const std::string& id, const char* field) {
  throw api_error(404, fmt::format("there is no file {}", id.substr(0, 80)), field);
}

/// Throws api_error if there is no such file; `field` is the request's field that names it.
inline stored_file owned_file(const api_call& call, const std::string& id, const char* field = "id") {
  auto file = call.context->files.find(id);
  if (!file || !call.key.owns(file->owner)) refuse_file(id, field);
  return *std::move(file);
}

inline std::string owned_content(const api_call& call, const std::string& id, const char* field = "id") {
  (void)owned_file(call, id, field);
  auto content = call.context->files.content(id);
  if (!content) refuse_file(id, field);
  return *std::move(content);
}

/// Arguments of a command about jobs, limited to the jobs that the key may see.
inline std::string about_owned(json arguments, const api_key& key) {
  if (!key.is_admin) arguments["owner"] = key.name;
  return dump(arguments);
}

}  // namespace troupe
