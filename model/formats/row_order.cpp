#include "model/formats/row_order.hpp"

#include <algorithm>
#include <numeric>

#include "model/formats/delta_names.hpp"

namespace troupe {

std::int64_t parts_of_heads::all_rows() const {
  return heads * std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

std::int64_t parts_of_heads::file_row(std::int64_t row) const {
  std::size_t part = first_part;
  for (; row >= heads * parts[part]; ++part) row -= heads * parts[part];
  const auto first = parts.begin() + static_cast<std::ptrdiff_t>(part);
  const std::int64_t before = std::accumulate(parts.begin(), first, std::int64_t{0});
  return row / *first * (all_rows() / heads) + before + row % *first;
}

std::int64_t groups_in_turn::file_row(std::int64_t row) const {
  if (row < rows_before) return row;
  const std::int64_t head = (row - rows_before) / head_rows, within = (row - rows_before) % head_rows;
  return rows_before + (head % groups * group_heads + head / groups) * head_rows + within;
}

std::vector<float> row_order::reordered(std::vector<float> rows, std::int64_t width, bool to_file) const {
  if (is_ours()) return rows;
  std::vector<float> moved(rows.size());
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(rows.size()) / width; ++row) {
    const std::int64_t ours = row * width, in_file = file_row(row) * width;
    std::copy_n(rows.begin() + (to_file ? ours : in_file), width, moved.begin() + (to_file ? in_file : ours));
  }
  return moved;
}

row_order order_in_class(const model_config& config, linear_kind kind) {
  if (is_delta(kind)) return detail::delta_order_in_class(config, kind);
  if (kind != linear_kind::q && kind != linear_kind::k) return {};
  if (config.is_latent())
    return turned_neighbours{.dim = kind == linear_kind::q ? config.latent.query() : config.latent.row(),
                             .turned = config.latent.turned,
                             .turned_last = true};
  if (config.file.turns_neighbours) return turned_neighbours{.dim = config.head_dim, .turned = config.turned_dim()};
  if (config.attention_gate && kind == linear_kind::q)
    return parts_of_heads{.heads = config.heads, .parts = {config.head_dim, config.head_dim}};
  return {};
}

row_order input_order_in_class(const model_config& config, linear_kind kind) {
  return kind == linear_kind::delta_out ? detail::delta_value_order(config) : row_order();
}

}  // namespace troupe
