#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "actors/http/tool_calls.hpp"
#include "model/grammar/constraint.hpp"

namespace troupe {

class request_fields;

/// What a request says of tools.
struct tool_wishes {
  std::vector<std::string> names;  ///< whose calls are read back
  std::size_t most_calls = SIZE_MAX;
  output_constraint form;    ///< of an answer that must be a call
  tool_call_form call = {};  ///< where an answer may be one: what it is beside the form that its text should have
};
/// `style`: how the model writes calls. Throws field_error.
tool_wishes read_tools(const request_fields& from, tool_style style);

}  // namespace troupe
