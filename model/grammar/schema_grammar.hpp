// JSON schemas as grammars: every text of the grammar is a JSON text that the schema accepts. It may accept more:
// objects have their properties in the order of the schema and, where it lists properties and does not say otherwise,
// no others. What would constrain and is not supported is refused by name.
#pragma once
#include <string_view>

#include "model/formats/json_input.hpp"
#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

inline constexpr json_limits schema_limits{.depth = 96, .values = 100'000};

/// Whether a schema's "type" may be this.
bool is_known_type(std::string_view type);

/// Adds to `work` what resolving the schema took, and refuses it where that becomes too much.
grammar_builder::rule_id read_schema(grammar_builder& to, std::string_view schema, std::size_t& work);

}  // namespace troupe::detail
