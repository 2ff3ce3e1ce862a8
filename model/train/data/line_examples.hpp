#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "model/train/data/training_data.hpp"

namespace troupe::detail {

struct line_examples {
  std::vector<training_example> examples;  ///< mostly one; none is longer than a row, and none where all was left out
  std::int64_t shortened = 0;              ///< that were cut, or left out: what is to be learned lies beyond the row
  std::int64_t unwritten = 0;              ///< chats with messages that the template does not write
  std::int64_t unended = 0;                ///< chats of which no answer ends with what ends answers
  std::int64_t chats = 0;                  ///< 1 where the line has messages
};

/// Of one line of JSON. Throws input_error with the cause, without file and line.
line_examples examples_of_line(std::string_view line, const data_format& format);

}  // namespace troupe::detail
