// What a request of LoRAX's API means as one for a completion. For .cpp files only.
#pragma once
#include "actors/requests/request_fields_impl.hpp"

namespace troupe {

/// What only this API's answers have.
struct generation_wishes {
  bool details = false;           ///< the answer tells its tokens
  bool prompt_details = false;    ///< and those of the prompt
  bool full_text = false;         ///< it begins with the prompt
  std::int32_t alternatives = 0;  ///< likeliest tokens told for each place
};
generation_wishes read_wishes(const request_fields& from);

/// Throws field_error, by this API's names of fields.
json completion_of_generation(const request_fields& from, bool stream);

}  // namespace troupe
