#pragma once
#include <cstddef>
#include <vector>

#include "model/train/data/line_examples.hpp"
#include "model/train/data/training_data.hpp"

// What makers of examples share.
namespace troupe::detail {

/// How many tokens both begin with.
std::size_t shared_beginning(const std::vector<token_id>& a, const std::vector<token_id>& b);

/// Adds the token that ends a text, if the model has one and the tokenizer did not write it.
void end_text(std::vector<token_id>& tokens, const data_format& format);

training_example with_learned(std::vector<token_id> tokens, std::size_t first_learned);

/// Adds what fits a row, if something in it is learned.
void add_to(line_examples& made, training_example example, const data_format& format);

}  // namespace troupe::detail
