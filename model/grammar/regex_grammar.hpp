// Regular expressions as grammars: what the usual engines agree on. What cannot be said by rules (look-around,
// back-references) is refused by name.
#pragma once
#include <string_view>

#include "model/grammar/byte_grammar.hpp"
#include "model/grammar/code_points.hpp"

namespace troupe::detail {

/// How a set of characters is written: plain, or inside of JSON's quotes.
using character_writer = grammar_builder::piece (*)(grammar_builder&, const code_point_set&);

/// `anchored`: the whole text must match; else any part of it, where ^ and $ do not say otherwise. Throws input_error
/// that calls the expression `name`.
grammar_builder::piece regex_piece(grammar_builder& to, std::string_view expression, bool anchored,
                                   character_writer write, std::string_view name);

}  // namespace troupe::detail
