#pragma once
#include <string_view>
#include <vector>

#include "model/train/training_data.hpp"

namespace troupe::detail {

/// The examples of one line of JSON; mostly one. Throws input_error with the cause, without file and line.
std::vector<training_example> examples_of_line(std::string_view line, const data_format& format);

}  // namespace troupe::detail
