#pragma once
#include <nlohmann/json.hpp>

namespace troupe::test {

/// Whether a value satisfies a schema by the words of the standard. Independent of the grammars under test.
bool satisfies(const nlohmann::ordered_json& value, const nlohmann::ordered_json& schema,
               const nlohmann::ordered_json& document);

}  // namespace troupe::test
