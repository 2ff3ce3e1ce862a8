// An answer's form in the fields of a request, in the names of several servers: from HTTP and from a job's line alike.
#pragma once
#include <array>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "model/grammar/constraint.hpp"

namespace troupe {

/// The last ones are SGLang's and llama.cpp's.
constexpr std::array<std::string_view, 10> constraint_keys{
    "response_format",    "guided_json", "guided_regex", "guided_choice", "guided_grammar",
    "structured_outputs", "json_schema", "regex",        "ebnf",          "grammar"};

/// None where nothing is asked for. Several fields that say the same are one. Throws field_error.
output_constraint read_constraint(const nlohmann::ordered_json& request);

}  // namespace troupe
