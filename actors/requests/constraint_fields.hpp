// An answer's form in the fields of a request, in OpenAI's names and vLLM's: from HTTP and from a job's line alike.
#pragma once
#include <array>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/grammar/constraint.hpp"

namespace troupe {

constexpr std::array<std::string_view, 6> constraint_keys{"response_format", "guided_json",    "guided_regex",
                                                          "guided_choice",   "guided_grammar", "structured_outputs"};

/// None where nothing is asked for. Throws field_error.
output_constraint read_constraint(const nlohmann::ordered_json& request);

}  // namespace troupe
