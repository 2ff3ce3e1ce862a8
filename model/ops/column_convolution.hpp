// What kernels of convolutions share. Compiled once per ISA.
#pragma once
#include "model/ops/kernels.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {

/// Sixteen columns of a convolution over the rows of a sequence.
struct column_convolution {
  const float* weights;  ///< [kernel, weight_stride]
  std::int64_t weight_stride;
  int kernel, rows;
  f32x16 bias;                            ///< what sums begin with
  f32x16 seen[most_convolved_rows] = {};  ///< the rows before, oldest first; in the end the last ones

  /// Those from `first` on.
  INLINED column_convolution(const convolution_columns& of, std::int64_t first, int of_rows)
      : weights(of.weights + first),
        weight_stride(of.weight_stride),
        kernel(of.kernel),
        rows(of_rows),
        bias(of.bias ? load(of.bias + first) : zero()) {}

  INLINED f32x16 weight(int j) const { return load(weights + j * weight_stride); }

  /// `enter` gives what the convolution sees of a row, `leave` takes the sum there.
  template <class Enter, class Leave>
  INLINED void run(Enter enter, Leave leave) {
    const int last = kernel - 1;
    for (int r = 0; r < rows; ++r) {
      seen[last] = enter(r);
      f32x16 total = bias;
      for (int j = 0; j <= last; ++j) {
        total = fma(weight(j), seen[j], total);
        if (j > 0) seen[j - 1] = seen[j];
      }
      leave(r, total);
    }
  }

  /// `gradient` gives that of a row's sum, which is not asked for again; `leave` takes that of what entered there, and
  /// in the rows behind was seen, too.
  template <class Gradient, class Leave>
  INLINED void back(Gradient gradient, Leave leave) const {
    const int last = kernel - 1;
    for (int r = 0; r < rows; ++r) {
      const int behind = rows - 1 - r < last ? rows - 1 - r : last;
      f32x16 total = zero();
      for (int later = 0; later <= behind; ++later) total = fma(weight(last - later), gradient(r + later), total);
      leave(r, total);
    }
  }
};

}  // namespace troupe::TROUPE_ISA
