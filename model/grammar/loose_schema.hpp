// What a form can demand of JSON that should, but need not, satisfy a schema.
#pragma once
#include <string>
#include <string_view>

namespace troupe {

/// Throws input_error of a schema that no form can be made of.
void check_schema(std::string_view schema);

/// `schema` itself, if a form can be made of it; else what is left without what no form can have; any object, if that
/// is nothing.
std::string loosened_schema(std::string_view schema);

}  // namespace troupe
