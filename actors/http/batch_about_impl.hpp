// What a client gave for a batch, as it is kept with the files. For .cpp files only.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "actors/http/file_store.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {

constexpr std::string_view batch_prefix = "batch_";  // begins the ids of batches, since fine-tunes are jobs, too

inline std::optional<json> find_batch(const file_store& files, const std::string& id) {
  const auto text = id.starts_with(batch_prefix) ? files.about(id) : std::nullopt;
  json about = text ? json::parse(*text, nullptr, false) : json();
  return about.is_object() ? std::optional(std::move(about)) : std::nullopt;
}

}  // namespace troupe
