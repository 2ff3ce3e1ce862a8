// What a key may see: its own files and jobs, or all. Others' are to it as if they were not there. For .cpp files only.
#pragma once
#include <string>

#include "actors/http/api_context.hpp"
#include "actors/http/api_error.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {

[[noreturn]] inline void refuse_file(const std::string& id, const char* field) {
  throw api_error(404, fmt::format("there is no file {}", id.substr(0, 80)), field);
}

/// Throws api_error where there is none; `field` is the request's that named it.
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

/// The arguments of a command about jobs, which then knows of no others.
inline std::string about_owned(json arguments, const api_key& key) {
  if (!key.is_admin) arguments["owner"] = key.name;
  return dump(arguments);
}

}  // namespace troupe
