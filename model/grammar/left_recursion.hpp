#pragma once
#include <optional>

#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

/// A rule that may call itself before it has read a byte; none where there is none.
std::optional<grammar_builder::rule_id> rule_that_begins_with_itself(const byte_grammar& grammar);

}  // namespace troupe::detail
