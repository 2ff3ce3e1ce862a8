#include <vector>

#include "base/to_size.hpp"
#include "model/ops/matmul.hpp"
#include "model/ops/pack.hpp"

namespace troupe {
namespace {

/// Row `row` of the inputs as the scheme's kernels see it.
std::vector<double> inputs_of(const matmul_args& a, std::int64_t row) {
  std::vector<double> x(to_size(a.w.ins));
  for (std::int64_t i = 0; i < a.w.ins; ++i) {
    if (!is_integer(a.w.kind)) {
      x[to_size(i)] = a.x[row * a.x_stride + i];
      continue;
    }
    x[to_size(i)] = static_cast<double>(integer_at(a.q, row, i)) * a.q.scales[row];
  }
  return x;
}

}  // namespace

std::int32_t integer_at(const quantized_view& q, std::int64_t row, std::int64_t i) {
  const auto [rows, together] = q.tile;
  const std::int64_t tile = row / rows * rows, in_tile = row % rows;
  const std::int64_t at = tile * q.ins + (i / together * rows + in_tile) * together + i % together;
  if (q.bits == input_bits::eight) return q.q[at];
  constexpr std::int64_t to_wide[] = {0, 1, -1, 0};
  return q.wide ? q.wide[at + to_wide[i % 4]] : 256 * q.q[at] + q.low[at];
}

void matmul_reference(const matmul_args& a) {
  std::vector<float> weights(to_size(a.w.ins));
  std::vector<std::vector<double>> inputs;
  for (int row = 0; row < a.rows; ++row) inputs.push_back(inputs_of(a, row));
  for (std::int64_t out = 0; out < a.w.outs; ++out) {
    unpack_row(a.w, out, weights.data());
    for (int row = 0; row < a.rows; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * inputs[to_size(row)][i];
      if (a.bias) sum += a.bias[out];
      float& y = a.y[row * a.y_stride + out];
      y = static_cast<float>(a.accumulate ? y + sum : sum);
    }
  }
}

}  // namespace troupe
