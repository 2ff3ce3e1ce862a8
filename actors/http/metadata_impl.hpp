// For .cpp files only.
#pragma once
#include <algorithm>

#include <fmt/format.h>

#include "actors/requests/request_fields_impl.hpp"
#include "base/utf8.hpp"

namespace troupe {

/// Puts a request's metadata into what repeats them: a job's record, wherever jobs are listed, or a response. So they
/// have OpenAI's limits.
inline void keep_metadata(json& into, const request_fields& from) {
  constexpr std::size_t most = 16, longest_key = 64, longest_value = 512;
  const json* metadata = from.object("metadata");
  if (!metadata) return;
  const bool fits = metadata->size() <= most && std::ranges::all_of(metadata->items(), [&](const auto& pair) {
                      return characters_in(pair.key()) <= longest_key && pair.value().is_string() &&
                             characters_in(pair.value().template get_ref<const std::string&>()) <= longest_value;
                    });
  if (!fits)
    refuse_field("metadata",
                 fmt::format("metadata has at most {} pairs of texts, keys of {} characters and values of {}", most,
                             longest_key, longest_value),
                 "invalid_value");
  into["metadata"] = *metadata;
}

}  // namespace troupe
