// What a client gave for a batch or a fine-tune besides the job's own options (files, metadata), as it is kept with the
// files. For .cpp files only.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "actors/http/file_store.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {

constexpr std::string_view batch_prefix = "batch_";  // begins the ids of batches, since fine-tunes are jobs, too

inline std::optional<json> find_about(const file_store& files, const std::string& job) {
  const auto text = files.about(job);
  json about = text ? json::parse(*text, nullptr, false) : json();
  return about.is_object() ? std::optional(std::move(about)) : std::nullopt;
}

inline std::optional<json> find_batch(const file_store& files, const std::string& id) {
  return id.starts_with(batch_prefix) ? find_about(files, id) : std::nullopt;
}

}  // namespace troupe
