#include "actors/http/files/owned_files.hpp"

#include <fmt/format.h>

#include "actors/http/api_error.hpp"

namespace troupe {

void refuse_file(const std::string& id, const char* field) {
  throw api_error(404, fmt::format("there is no file {}", id.substr(0, 80)), field);
}

stored_file owned_file(const api_call& call, const std::string& id, const char* field) {
  auto file = call.context->files.find(id);
  if (!file || !call.key.owns(file->owner)) refuse_file(id, field);
  return *std::move(file);
}

std::string owned_content(const api_call& call, const std::string& id, const char* field) {
  (void)owned_file(call, id, field);
  auto content = call.context->files.content(id);
  if (!content) refuse_file(id, field);
  return *std::move(content);
}

}  // namespace troupe
