#pragma once
#include <vector>

#include "model/tokenizer/pair_table.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::detail {

/// Merges the symbols of a long word and appends what is left to `out`. Takes n log n steps for n symbols.
/// `merges`: (left, right) → (rank, result).
void merge_long_word(const std::vector<token_id>& symbols, const pair_table& merges, std::vector<token_id>& out);

}  // namespace troupe::detail
