// What a form can demand of JSON that should, but need not, satisfy a schema.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// Throws input_error of a schema that no form can be made of, or that nothing satisfies. Adds to `work` what it took
/// to resolve it: schemas that share this number may together take as much as one alone.
void check_schema(std::string_view schema, std::size_t& work);

/// `schema` itself, if a form can be made of it; else what is left without what no form can have; any object, if that
/// is nothing.
std::string loosened_schema(std::string_view schema, std::size_t& work);

}  // namespace troupe
