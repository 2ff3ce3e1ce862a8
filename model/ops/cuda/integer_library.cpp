#include "model/ops/cuda/integer_library.hpp"

#include <vector>

#include "base/to_size.hpp"

namespace troupe::cuda {
namespace {

std::int32_t sum_of_products(const std::int8_t* a, const std::int8_t* b, std::int64_t count) {
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::int32_t{a[i]} * b[i];
  return sum;
}

}  // namespace

bool is_exact(const stream& on, integer_library& library) {
  constexpr std::int64_t outs = 80, ins = 192, rows = 260;
  const auto weights = test_pattern(outs * ins, 1013904223u), inputs = test_pattern(rows * ins, 12345u);
  std::vector<std::int32_t> sums(to_size(rows * outs));
  const device_buffer<std::int8_t> weights_there(weights.size()), inputs_there(inputs.size());
  const device_buffer<std::int32_t> sums_there(sums.size());
  copy(weights_there.data(), weights.data(), weights.size(), on);
  copy(inputs_there.data(), inputs.data(), inputs.size(), on);
  clear(sums_there.data(), sums.size() * sizeof(std::int32_t), on);  // the last trial's may lie there
  const bool is_done =
      library.multiply(on, {weights_there.data(), inputs_there.data(), sums_there.data(), outs, ins, rows});
  copy(sums.data(), sums_there.data(), sums.size(), on);
  on.wait();
  if (!is_done) return false;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t out = 0; out < outs; ++out)
      if (sums[to_size(row * outs + out)] !=
          sum_of_products(weights.data() + out * ins, inputs.data() + row * ins, ins))
        return false;
  return true;
}

loaded<integer_library> load_integer_library(const stream& on) {
  return load_library(open_integer_library, is_exact, on);
}

}  // namespace troupe::cuda
