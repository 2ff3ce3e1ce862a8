#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "model/train/training_data.hpp"

namespace troupe::detail {

/// The examples of one line of JSON; mostly one. Throws input_error with the cause, without file and line.
std::vector<training_example> examples_of_line(std::string_view line, const data_format& format);

/// The tokenizer's own, unless answers end with others alone (end_tokens_of): what is learned must end them.
std::optional<token_id> end_of_text(const data_format& format);

}  // namespace troupe::detail
