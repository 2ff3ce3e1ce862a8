// Random matrices and rows for the kernels' tests.
#pragma once
#include <random>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/to_size.hpp"
#include "model/ops/isa.hpp"
#include "model/ops/matmul.hpp"
#include "model/ops/pack.hpp"

namespace troupe {

class random_data {
 public:
  explicit random_data(unsigned seed) : random_(seed) {}
  float value() { return normal_(random_); }
  int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  /// [rows, padded], with zeros after the first `n` values of each row.
  aligned_buffer<float> rows(int rows, std::int64_t n, std::int64_t padded) {
    aligned_buffer<float> all(to_size(rows * padded + 16));
    for (int row = 0; row < rows; ++row)
      for (std::int64_t i = 0; i < n; ++i) all[to_size(row * padded + i)] = value();
    return all;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
};

/// A packed matrix of random weights, and the memory it lies in.
struct random_matrix {
  aligned_buffer<std::byte> memory;
  matrix_view view;
  std::vector<float> weights;  // [outs, ins], before packing

  random_matrix(random_data& random, scheme kind, std::int64_t outs, std::int64_t ins)
      : memory(packed_bytes(kind, outs, ins).total()), weights(to_size(outs * ins)) {
    matrix_packer packer(kind, outs, ins, memory.data());
    coded_row coded;
    for (std::int64_t out = 0; out < outs; ++out) {
      float* row = weights.data() + out * ins;
      for (std::int64_t i = 0; i < ins; ++i) row[i] = random.value() * 0.1f + 0.02f;
      if (is_integer(kind)) {
        encode_row(kind, row, ins, coded);
        packer.put(out, coded);
      } else {
        packer.put(out, row);
      }
    }
    view = view_of(kind, outs, ins, memory.data());
  }
};

}  // namespace troupe
