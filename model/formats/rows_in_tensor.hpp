#pragma once
#include <cstdint>

#include "model/formats/row_order.hpp"

namespace troupe {

/// Where one of our weights lies in a tensor of a file, and how its numbers are read.
struct rows_in_tensor {
  std::int64_t first_out = 0;  ///< our row 0 inside the tensor (a third of GPT-2's c_attn)
  std::int64_t first_in = 0;   ///< likewise our column 0, of one that is transposed
  std::int64_t step = 1;       ///< from our rows to the next (2: gpt-oss's gate and up take turns)
  bool transposed = false;     ///< the tensor is [in, out]: GPT-2's Conv1D
  row_order order = {};        ///< of rows that the file has in another order
  float plus = 0;              ///< is added to each number of a vector (Gemma's norms)
  float times = 1;             ///< then multiplies it

  /// Where our row is among the tensor's.
  std::int64_t file_row(std::int64_t row) const { return first_out + order.file_row(row) * step; }
};

}  // namespace troupe
