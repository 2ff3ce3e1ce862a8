// The fields of a request that say what form the answer must have, in the names of several servers. For HTTP and for
// lines of jobs.
#pragma once
#include <array>
#include <string_view>

#include "model/grammar/constraint.hpp"

namespace troupe {

class request_fields;

/// The last three are SGLang's and llama.cpp's names.
constexpr std::array<std::string_view, 10> constraint_keys{
    "response_format",    "guided_json", "guided_regex", "guided_choice", "guided_grammar",
    "structured_outputs", "json_schema", "regex",        "ebnf",          "grammar"};

/// Returns no constraint if none is asked for. Several fields may say the same. Throws field_error.
output_constraint read_constraint(const request_fields& from);

}  // namespace troupe
