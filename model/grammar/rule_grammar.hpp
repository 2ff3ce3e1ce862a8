// Grammars as text, in the notation that llama.cpp made common (GBNF): `name ::= "text" | [a-z]+ other-name`.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

struct rule_grammar {
  grammar_builder::rule_id root;
  std::map<grammar_builder::rule_id, std::string> names;
};
/// Throws input_error that names line and cause.
rule_grammar read_rule_grammar(grammar_builder& to, std::string_view text);

}  // namespace troupe::detail
