// Compiled once per ISA. Convolutions over the rows of a sequence, column by column.
#include "model/ops/column_convolution.hpp"
#include "model/ops/kernels_isa.hpp"

namespace troupe::TROUPE_ISA {
namespace {

/// From the column `first` on, with the rows before from where the arguments have them, and to there.
template <class Args, class Enter, class Leave>
INLINED inline void run_columns(const Args& a, std::int64_t first, Enter enter, Leave leave) {
  column_convolution columns(a.columns, first, a.rows);
  const int before = a.columns.kernel - 1;
  for (int j = 0; j < before; ++j) columns.seen[j] = load(a.before + j * a.before_stride + first);
  columns.run(enter, leave);
  for (int j = 0; j < before; ++j) store(a.before + j * a.before_stride + first, columns.seen[j]);
}

}  // namespace

void convolve(const convolve_args& a) {
  for (std::int64_t i = 0; i < a.columns.count; i += lanes) {
    const auto at = [&](int row) INLINED { return a.x + row * a.row_stride + i; };
    run_columns(
        a, i, [&](int row) INLINED { return load(at(row)); },
        [&](int row, f32x16 total) INLINED { store(at(row), total * sigmoid(total)); });
  }
}

void short_convolve(const short_convolution_args& a) {
  for (std::int64_t i = 0; i < a.columns.count; i += lanes) {
    const auto of = [&](const float* rows, int row) INLINED { return load(rows + row * a.row_stride + i); };
    run_columns(
        a, i, [&](int row) INLINED { return of(a.b, row) * of(a.x, row); },
        [&](int row, f32x16 total) INLINED { store(a.out + row * a.out_stride + i, of(a.c, row) * total); });
  }
}

}  // namespace troupe::TROUPE_ISA
