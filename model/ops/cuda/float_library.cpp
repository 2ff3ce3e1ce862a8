#include "model/ops/cuda/float_library.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/half.hpp"
#include "base/to_size.hpp"

namespace troupe::cuda {
namespace {

/// Numbers of either sign up to 1.
std::vector<std::uint16_t> bf16_pattern(std::int64_t size, unsigned step) {
  const std::vector<std::int8_t> bytes = test_pattern(size, step);
  std::vector<std::uint16_t> all(bytes.size());
  std::transform(bytes.begin(), bytes.end(), all.begin(),
                 [](std::int8_t byte) { return f32_to_bf16(static_cast<float>(byte) / 128.0f); });
  return all;
}

struct trial {
  std::int64_t rows, columns, depth;
  std::vector<std::uint16_t> a = bf16_pattern(rows * depth, 1013904223u), b = bf16_pattern(depth * columns, 12345u);
  std::size_t size = to_size(rows * columns);
  device_buffer<std::uint16_t> a_there{a.size()}, b_there{b.size()}, rounded_there{size};
  device_buffer<float> sums_there{size}, more_there{size};

  trial(std::int64_t rows_, std::int64_t columns_, std::int64_t depth_, const stream& on)
      : rows(rows_), columns(columns_), depth(depth_) {
    copy(a_there.data(), a.data(), a.size(), on);
    copy(b_there.data(), b.data(), b.size(), on);
    clear(sums_there.data(), sums_there.size() * sizeof(float), on);
  }

  bf16_product product(bool a_turned, bool b_turned) const {
    return {.rows = rows,
            .columns = columns,
            .depth = depth,
            .a = {a_there.data(), a_turned ? rows : depth, a_turned},
            .b = {b_there.data(), b_turned ? depth : columns, b_turned},
            .sums = {sums_there.data(), columns},
            .factor = 0.5f};
  }

  double expected(std::int64_t row, std::int64_t column, bool a_turned, bool b_turned) const {
    double sum = 0;
    for (std::int64_t d = 0; d < depth; ++d) {
      const std::int64_t in_a = a_turned ? d * rows + row : row * depth + d,
                         in_b = b_turned ? column * depth + d : d * columns + column;
      sum += double{bf16_to_f32(a[to_size(in_a)])} * bf16_to_f32(b[to_size(in_b)]);
    }
    return 0.5 * sum;
  }

  /// `times` the product, within what sums of so few numbers, or a bf16, may be off by.
  template <class Value>
  bool is_near(const std::vector<float>& got, double times, double off, Value value) const {
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        const double sum = times * value(row, column), here = got[to_size(row * columns + column)];
        if (!(std::fabs(here - sum) <= off * std::max(1.0, std::fabs(sum)))) return false;
      }
    return true;
  }
};

bool is_right(const stream& on, float_library& library, const trial& tried) {
  for (const bool a_turned : {false, true})
    for (const bool b_turned : {false, true}) {
      bf16_product p = tried.product(a_turned, b_turned);
      library.multiply(on, p);
      p.how = into::add;
      library.multiply(on, p);
      p.before = p.sums.data, p.sums.data = tried.more_there.data();
      library.multiply(on, p);
      p.how = into::set;
      p.rounded = tried.rounded_there.data();
      library.multiply(on, p);
      std::vector<float> sums(tried.sums_there.size()), more(sums.size()), values(sums.size());
      std::vector<std::uint16_t> rounded(sums.size());
      copy(sums.data(), tried.sums_there.data(), sums.size(), on);
      copy(more.data(), tried.more_there.data(), more.size(), on);
      copy(rounded.data(), tried.rounded_there.data(), rounded.size(), on);
      on.wait();
      std::transform(rounded.begin(), rounded.end(), values.begin(), bf16_to_f32);
      const auto value = [&](std::int64_t row, std::int64_t column) {
        return tried.expected(row, column, a_turned, b_turned);
      };
      if (!tried.is_near(sums, 2, 1e-4, value) || !tried.is_near(more, 3, 1e-4, value) ||
          !tried.is_near(values, 1, 1e-2, value))
        return false;
    }
  return true;
}

}  // namespace

/// As small as can be, and as long and narrow as an adapter's.
bool is_right(const stream& on, float_library& library) {
  return is_right(on, library, trial(72, 48, 136, on)) && is_right(on, library, trial(40, 16, 4112, on));
}

loaded<float_library> load_float_library(const stream& on) {
  return load_library<float_library>(open_float_library, is_right, on);
}

}  // namespace troupe::cuda
