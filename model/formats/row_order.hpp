#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

/// The file turns neighbours, the numbers 2 i and 2 i + 1 of a head. Here the numbers i and i + turned / 2 turn
/// together.
struct turned_neighbours {
  std::int64_t dim = 0;      ///< of a head
  std::int64_t turned = 0;   ///< how much of it turns, from its beginning
  bool turned_last = false;  ///< the file has that part at the head's end

  std::int64_t file_row(std::int64_t row) const {
    const std::int64_t head = row / dim, within = row % dim, half = turned / 2;
    if (within >= turned) return turned_last ? row - turned : row;
    return head * dim + (turned_last ? dim - turned : 0) + within % half * 2 + within / half;
  }
};

/// The file has several parts of each head together, and then those of the next head. Here all heads' rows of one part
/// follow each other, and then those of the next part.
struct parts_of_heads {
  std::int64_t heads = 0;
  std::array<std::int64_t, 4> parts = {};  ///< rows of each in a head
  std::size_t first_part = 0;              ///< of ours, if they are not all

  std::int64_t file_row(std::int64_t row) const;
  /// Of all parts together.
  std::int64_t all_rows() const;
};

/// Behind some rows the file has groups of heads, one after the other. Here the groups take turns.
struct groups_in_turn {
  std::int64_t groups = 0, group_heads = 0, head_rows = 0;
  std::int64_t rows_before = 0;

  std::int64_t file_row(std::int64_t row) const;
};

/// Where a file has the rows of a matrix whose outputs are heads, or the numbers of its bias: in one of these orders,
/// or in ours.
class row_order {
 public:
  row_order() = default;
  row_order(const turned_neighbours& in_file) : in_file_(in_file) {}
  row_order(const parts_of_heads& in_file) : in_file_(in_file) {}
  row_order(const groups_in_turn& in_file) : in_file_(in_file) {}

  /// Where the file has our row.
  std::int64_t file_row(std::int64_t row) const {
    return std::visit([row](const auto& in_file) { return in_file.file_row(row); }, in_file_);
  }
  bool is_ours() const { return std::holds_alternative<same_rows>(in_file_); }
  /// Null where the file turns none.
  const turned_neighbours* neighbours() const { return std::get_if<turned_neighbours>(&in_file_); }
  /// Rows [outs, width] as the file has them, in our order, and back.
  std::vector<float> in_our_order(std::vector<float> rows, std::int64_t width) const {
    return reordered(std::move(rows), width, false);
  }
  std::vector<float> in_file_order(std::vector<float> rows, std::int64_t width) const {
    return reordered(std::move(rows), width, true);
  }

 private:
  struct same_rows {
    std::int64_t file_row(std::int64_t row) const { return row; }
  };

  std::vector<float> reordered(std::vector<float> rows, std::int64_t width, bool to_file) const;

  std::variant<same_rows, turned_neighbours, parts_of_heads, groups_in_turn> in_file_;
};

/// Of the model's class in Hugging Face's library, and so of PEFT's factors for its layers. Where several linear layers
/// are one there, that of the first of them is that of all.
row_order order_in_class(const model_config& config, linear_kind kind);
/// The same of its inputs.
row_order input_order_in_class(const model_config& config, linear_kind kind);

}  // namespace troupe
