#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

/// Where a file has the rows of a matrix whose outputs are heads, or the numbers of its bias.
struct row_order {
  /// It turns neighbours, the numbers 2 i and 2 i + 1 of a head. Here the numbers i and i + turned / 2 turn together.
  std::int64_t dim = 0;      ///< of a head; 0: it does not
  std::int64_t turned = 0;   ///< how much of it turns, from its beginning
  bool turned_last = false;  ///< the file has that part at the head's end

  /// It has several parts of each head together, and then those of the next head. Here all heads' rows of one part
  /// follow each other, and then those of the next part.
  std::int64_t heads = 0;                  ///< 0: it has not
  std::array<std::int64_t, 4> parts = {};  ///< rows of each in a head
  std::size_t first_part = 0;              ///< of ours, if they are not all

  /// Behind some rows it has groups of heads, one after the other. Here the groups take turns.
  std::int64_t groups = 0;  ///< 0: it has not
  std::int64_t group_heads = 0, head_rows = 0, rows_before = 0;

  /// Where the file has our row.
  std::int64_t file_row(std::int64_t row) const {
    if (heads > 0) return row_of_part(row);
    if (groups > 0) return row_of_group(row);
    if (dim == 0) return row;
    const std::int64_t head = row / dim, within = row % dim, half = turned / 2;
    if (within >= turned) return turned_last ? row - turned : row;
    return head * dim + (turned_last ? dim - turned : 0) + within % half * 2 + within / half;
  }
  bool is_ours() const { return heads == 0 && groups == 0 && dim == 0; }
  /// Of all parts together.
  std::int64_t all_rows() const;
  /// Rows [outs, width] as the file has them, in our order, and back.
  std::vector<float> in_our_order(std::vector<float> rows, std::int64_t width) const {
    return reordered(std::move(rows), width, false);
  }
  std::vector<float> in_file_order(std::vector<float> rows, std::int64_t width) const {
    return reordered(std::move(rows), width, true);
  }

 private:
  std::vector<float> reordered(std::vector<float> rows, std::int64_t width, bool to_file) const;
  std::int64_t row_of_part(std::int64_t row) const;
  std::int64_t row_of_group(std::int64_t row) const;
};

/// Of the model's class in Hugging Face's library, and so of PEFT's factors for its layers. Where several linear layers
/// are one there, that of the first of them is that of all.
row_order order_in_class(const model_config& config, linear_kind kind);
/// The same of its inputs.
row_order input_order_in_class(const model_config& config, linear_kind kind);

}  // namespace troupe
