#pragma once
#include <string>
#include <vector>

#include "actors/http/chats/tool_calls.hpp"
#include "model/grammar/constraint.hpp"

namespace troupe {

class request_fields;

/// What a request says about tools.
struct tool_wishes {
  tool_style style = tool_style::none;  ///< of the calls that are looked for
  std::vector<tool_offer> offers;       ///< the functions whose calls are looked for in answers
  std::size_t most_calls = SIZE_MAX;
  output_constraint form;    ///< if the answer must be a call: its form
  std::string called;        ///< the function whose arguments the form is, where a message's address names it
  tool_call_form call = {};  ///< if the answer may be a call: the form of that, besides the form of a text
  output_constraint strict;  ///< if it may be any text: the form that holds calls to their tools' schemas
};
/// Whether read_tools() may have to make forms of the parameters, which takes longer than the server's threads have.
/// `from`: the body in the words of any API.
bool may_demand_calls(const request_fields& from);
/// `style`: how the model writes calls. Throws field_error.
tool_wishes read_tools(const request_fields& from, tool_style style);

}  // namespace troupe
