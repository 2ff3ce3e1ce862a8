#pragma once
#include <string_view>
#include <vector>

#include "model/train/data/training_data.hpp"

namespace troupe::detail {

struct line_examples {
  std::vector<training_example> examples;  ///< mostly one; none is longer than a row, and none where all was left out
  data_losses losses;
};

/// Whether a line is an object with the keys of an example, be their values what they may.
bool is_example(std::string_view line);

/// Of one line of JSON. Throws input_error with the cause, without file and line.
line_examples examples_of_line(std::string_view line, const data_format& format);

}  // namespace troupe::detail
