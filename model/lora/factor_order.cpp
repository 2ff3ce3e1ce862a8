#include "model/lora/factor_order.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Of a matrix with so many rows, each by itself.
template <class Order>
std::vector<float> ordered_rows(std::vector<float> matrix, std::int64_t rows, Order order) {
  const auto width = static_cast<std::int64_t>(matrix.size()) / rows;
  for (auto row = matrix.begin(); row != matrix.end(); row += width)
    std::ranges::copy(order(std::vector<float>(row, row + width)), row);
  return matrix;
}

}  // namespace

std::vector<float> factor_order::our_a(std::vector<float> a, std::int64_t rank) const {
  if (ins_.is_ours()) return a;
  return ordered_rows(std::move(a), rank, [&](auto row) { return ins_.in_our_order(std::move(row), 1); });
}

std::vector<float> factor_order::peft_a(std::vector<float> a, std::int64_t rank) const {
  if (ins_.is_ours()) return a;
  return ordered_rows(std::move(a), rank, [&](auto row) { return ins_.in_file_order(std::move(row), 1); });
}

}  // namespace troupe
