// Two schemas of plain cases, without references and choices.
#pragma once
#include <optional>
#include <string>

#include "model/grammar/schema_shape_impl.hpp"

namespace troupe::detail {

/// What satisfies both; nothing where no value does. Throws input_error where this cannot be written as one schema.
std::optional<schema_json> merged(const schema_json& a, const schema_json& b, const std::string& where);

/// True where it is certain that no value satisfies both.
bool are_apart(const schema_json& a, const schema_json& b);

}  // namespace troupe::detail
