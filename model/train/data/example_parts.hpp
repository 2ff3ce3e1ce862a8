#pragma once
#include <vector>

#include "model/train/data/training_data.hpp"

// What makers of examples share.
namespace troupe::detail {

/// Adds the token that ends a text, unless the tokenizer wrote it.
void end_text(std::vector<token_id>& tokens, const data_format& format);

}  // namespace troupe::detail
