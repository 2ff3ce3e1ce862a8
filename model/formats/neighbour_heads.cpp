#include "model/formats/neighbour_heads.hpp"

#include <algorithm>

namespace troupe {

std::vector<float> neighbour_heads::in_our_order(std::vector<float> rows, std::int64_t width) const {
  if (dim == 0) return rows;
  std::vector<float> to(rows.size());
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(rows.size()) / width; ++row)
    std::copy_n(rows.begin() + file_row(row) * width, width, to.begin() + row * width);
  return to;
}

std::vector<float> neighbour_heads::in_file_order(std::vector<float> rows, std::int64_t width) const {
  if (dim == 0) return rows;
  std::vector<float> to(rows.size());
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(rows.size()) / width; ++row)
    std::copy_n(rows.begin() + row * width, width, to.begin() + file_row(row) * width);
  return to;
}

neighbour_heads heads_in_class(const model_config& config, linear_kind kind) {
  const bool turns = config.turns_neighbours && (kind == linear_kind::q || kind == linear_kind::k);
  return turns ? neighbour_heads{config.head_dim, config.turned_dim()} : neighbour_heads{};
}

}  // namespace troupe
