// The parts of a schema that say what texts and numbers are allowed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "model/grammar/json_grammar.hpp"
#include "model/grammar/schema_shape_impl.hpp"

namespace troupe::detail {

/// Whether rules can be made of a regular expression.
bool can_be_written(const std::string& pattern);

/// Whether a number can be held to a bound. `keyword`: minimum and so on.
bool can_be_held(std::string_view keyword, const schema_json& bound);

/// Others say nothing.
bool is_known_format(std::string_view name);

/// A keyword's whole number, as minItems has it.
std::int32_t count_of(const schema_json& schema, const char* keyword, std::int32_t otherwise);

grammar_builder::piece schema_string(grammar_builder& to, json_rules& text, const schema_json& schema,
                                     const std::string& where);
/// `type`: "integer" or "number".
grammar_builder::piece schema_number(grammar_builder& to, json_rules& text, const std::string& type,
                                     const schema_json& schema, const std::string& where);

}  // namespace troupe::detail
