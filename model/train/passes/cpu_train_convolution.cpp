#include "model/train/passes/cpu_train_convolution.hpp"

#include <algorithm>
#include <array>

namespace troupe {
namespace {

constexpr std::int64_t columns_together = 64;  ///< of a convolution, in a task

/// Some columns of a segment's rows.
struct column_task {
  std::int64_t row, rows, first, columns;
};

/// What a convolution has either way: where b, c and x lie beside each other in `branches`.
template <class Args>
Args convolution_of(const column_task& task, const trained_layer& weights, const model_config& config,
                    const_float_rows branches) {
  Args args;
  args.columns = {.weights = weights.convolution + task.first,
                  .weight_stride = padded_row(config.hidden),
                  .kernel = static_cast<int>(config.convolved_rows),
                  .count = task.columns};
  args.b = branches.row(task.row) + task.first;
  args.c = args.b + config.hidden;
  args.x = args.b + 2 * config.hidden;
  args.row_stride = branches.stride;
  args.rows = static_cast<int>(task.rows);
  return args;
}

}  // namespace

template <class Work>
void cpu_train_convolution::for_columns(const training_rows& batch, Work work) {
  const std::int64_t columns = rows_.config().hidden, parts = ceil_div(columns, columns_together);
  rows_.with().pool.run(static_cast<int>(static_cast<std::int64_t>(batch.segments.size()) * parts), [&](int i, int) {
    const auto& segment = batch.segments[to_size(i / parts)];
    const std::int64_t first = i % parts * columns_together;
    work(column_task{segment.first, segment.rows, first, std::min(columns_together, columns - first)});
  });
}

void cpu_train_convolution::forward(const layer_rows& at, float_rows out) {
  const float_rows branches = at.a.branches, convolved = at.a.convolved;
  rows_.apply(at, rows_.scratch().normed, into::set, {{linear_kind::convolution_in, branches}});
  for_columns(at.batch, [&](const column_task& task) {
    std::array<float, to_size(longest_convolution * columns_together)> before = {};
    auto args = convolution_of<short_convolution_args>(task, at.weights, rows_.config(), branches);
    args.out = convolved.row(task.row) + task.first;
    args.out_stride = convolved.stride;
    args.before = before.data();
    args.before_stride = task.columns;
    rows_.kernels().short_convolve(args);
  });
  rows_.add_output(at, linear_kind::convolution_out, convolved, at.in, out);
}

void cpu_train_convolution::backward(const layer_rows& at, const_float_rows given, gradient_target to) {
  const float_rows branches = at.a.branches, dbranches = rows_.scratch().dbranches, convolved = rows_.inner();
  rows_.apply_back(at, at.a.convolved, {{linear_kind::convolution_out, given}}, {convolved});
  for_columns(at.batch, [&](const column_task& task) {
    const std::int64_t hidden = rows_.config().hidden;
    auto args = convolution_of<short_convolution_back_args>(task, at.weights, rows_.config(), branches);
    args.out_gradient = convolved.row(task.row) + task.first;
    args.out_stride = convolved.stride;
    args.b_gradient = dbranches.row(task.row) + task.first;
    args.c_gradient = args.b_gradient + hidden;
    args.x_gradient = args.b_gradient + 2 * hidden;
    args.gradient_stride = dbranches.stride;
    rows_.train_kernels().short_convolve_back(args);
  });
  rows_.read_back(at, {{linear_kind::convolution_in, dbranches}}, to);
}

}  // namespace troupe
