#include "model/train/kernels/products.hpp"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::int64_t rows_at_once = 16;      // where rows are handed out one by one
constexpr std::int64_t most_summed = 1 << 15;  // bytes times int8 that an int32 holds for certain
constexpr std::int64_t turned_columns = 64;

constexpr std::array<std::string_view, 3> precision_names{"served", "fine", "exact"};

/// Next to nothing where no product is made of whole numbers.
quantized_rows integer_rows(const kernel_table& kernels, train_precision precision, std::int64_t most_rows,
                            std::int64_t most_width) {
  const bool none = precision == train_precision::exact;
  return quantized_rows(kernels, none ? 1 : most_rows, none ? 64 : most_width, input_bits::sixteen);
}

bool is_u8(const trained_matrix& w) {
  return !w.values && w.packed.kind == scheme::u8;
}

/// y = x W^T
operand forward_of(const trained_matrix& w) {
  if (w.values) return as_columns({w.values, w.stride});
  return {operand::kind::packed, {}, w.packed};
}

/// dx = dy W
operand backward_of(const trained_matrix& w) {
  if (w.values) return as_rows({w.values, w.stride});
  return {operand::kind::packed_transposed, {}, w.packed};
}

}  // namespace

train_precision precision_from_name(std::string_view name) {
  const auto found = std::find(precision_names.begin(), precision_names.end(), name);
  if (found == precision_names.end()) refuse("unknown precision '{}': use served, fine or exact", name);
  return static_cast<train_precision>(found - precision_names.begin());
}

std::string_view name_of(train_precision precision) {
  return precision_names[to_size(precision)];
}

products::products(const compute& with, train_precision precision, std::int64_t most_rows, std::int64_t most_width)
    : with_(with),
      kernels_(train_kernels_like(with.kernels)),
      precision_(precision),
      row_width_(padded_row(most_width) + 64),
      panels_(to_size(with.pool.threads() * depth_at_once * columns_at_once)),
      inputs_(integer_rows(with.kernels, precision, most_rows, most_width)),
      rows_scratch_(to_size(with.pool.threads() * row_width_)),
      turned_(
          to_size(precision == train_precision::exact ? 0 : with.pool.threads() * turned_columns * (most_summed + 64))),
      constants_(to_size(most_rows)),
      ones_(turned_columns),
      zeros_(turned_columns) {
  std::fill_n(ones_.data(), ones_.size(), 1.0f);
}

void products::multiply(const product_args& args) {
  const std::int64_t column_blocks = ceil_div(args.columns, columns_at_once);
  // few columns: rows are shared out too
  const std::int64_t wanted = std::max<std::int64_t>(1, 4 * with_.pool.threads() / column_blocks);
  const std::int64_t rows = std::max<std::int64_t>(rounded_up(ceil_div(args.rows, wanted), 12), 48);
  const std::int64_t row_blocks = ceil_div(args.rows, rows);
  with_.pool.run(static_cast<int>(column_blocks * row_blocks), [&](int task, int thread) {
    const std::int64_t row = task % row_blocks * rows;
    multiply_block(args, row, std::min(rows, args.rows - row), task / row_blocks * columns_at_once, thread);
  });
}

void products::multiply_block(const product_args& args, std::int64_t row, std::int64_t rows, std::int64_t column,
                              int thread) {
  float* panels = panels_.data() + thread * depth_at_once * columns_at_once;
  const std::int64_t columns = std::min(columns_at_once, args.columns - column);
  const bool in_place = args.b.layout == operand::kind::rows;
  for (std::int64_t k = 0; k < args.depth; k += depth_at_once) {
    const std::int64_t depth = std::min(depth_at_once, args.depth - k);
    const_float_rows b{panels, panel_columns};
    if (in_place)
      b = {args.b.values.row(k) + column, args.b.values.stride};
    else
      fill_panels(args.b, {.w = args.b.w,
                           .transposed = args.b.layout == operand::kind::packed_transposed,
                           .first_depth = k,
                           .depth = depth,
                           .first_column = column,
                           .columns = columns,
                           .to = panels});
    kernels_.multiply({.rows = rows,
                       .columns = columns,
                       .depth = depth,
                       .a = {args.a_transposed ? args.a.row(k) + row : args.a.row(row) + k, args.a.stride},
                       .a_transposed = args.a_transposed,
                       .b = b,
                       .panel_step = in_place ? panel_columns : depth * panel_columns,
                       .c = {args.c.row(row) + column, args.c.stride},
                       .factor = args.factor,
                       .how = k > 0 ? into::add : args.how});
  }
}

/// A part of b, which does not lie in rows.
void products::fill_panels(const operand& b, const fill_args& part) const {
  if (b.layout != operand::kind::columns) return kernels_.fill(part);
  for (std::int64_t panel = 0; panel < part.columns; panel += panel_columns)
    kernels_.transpose(b.values.row(part.first_column + panel) + part.first_depth, b.values.stride,
                       std::min(panel_columns, part.columns - panel), part.depth, part.to + panel * part.depth,
                       panel_columns);
}

void products::forward_floats(const_float_rows x, std::int64_t rows, const output& o) {
  multiply(
      {.rows = rows, .columns = o.w->outs, .depth = o.w->ins, .a = x, .b = forward_of(*o.w), .c = o.y, .how = o.how});
  if (o.bias) with_.pool.run_each(rows, 64, [&](int row) { with_.kernels.add(o.bias, o.w->outs, o.y.row(row)); });
}

void products::forward(const_float_rows x, std::int64_t rows, std::span<const output> outputs) {
  std::vector<matmul_args> jobs;
  for (const output& o : outputs) {
    const bool in_integers = !o.w->values && is_integer(o.w->packed.kind) && precision_ != train_precision::exact;
    if (!in_integers) {
      forward_floats(x, rows, o);
      continue;
    }
    jobs.push_back({.w = o.w->packed,
                    .rows = static_cast<int>(rows),
                    .q = {},
                    .y = o.y.data,
                    .y_stride = o.y.stride,
                    .bias = o.bias,
                    .accumulate = o.how == into::add});
  }
  if (jobs.empty()) return;
  inputs_.assign(with_.pool, x.data, x.stride, static_cast<int>(rows), jobs.front().w.ins,
                 precision_ == train_precision::fine ? input_bits::sixteen : input_bits::eight);
  for (auto& job : jobs) job.q = inputs_.view();
  matmul(with_, jobs);
}

void products::backward(const_float_rows dy, std::int64_t rows, const trained_matrix& w, float_rows dx, into how) {
  if (is_u8(w) && precision_ != train_precision::exact) return backward_u8(dy, rows, w.packed, dx, how);
  multiply({.rows = rows, .columns = w.ins, .depth = w.outs, .a = dy, .b = backward_of(w), .c = dx, .how = how});
}

/// w = mid + (z - 128) scale with scale and mid of the output: scale goes to dy, and the sum over dy mid is the same
/// for all inputs. What remains is a product of whole numbers, as in serving, with the weights turned over on the way.
void products::backward_u8(const_float_rows dy, std::int64_t rows, const matrix_view& w, float_rows dx, into how) {
  for (std::int64_t first = 0; first < w.outs; first += most_summed) {
    const some_outs outs{w, first, std::min(most_summed, w.outs - first)};
    quantize_scaled(dy, rows, outs);
    with_.pool.run_pieces(w.ins, turned_columns, [&](std::int64_t first_in, std::int64_t, int thread) {
      turned_product(outs, first_in, rows, dx, first > 0 ? into::add : how, thread);
    });
  }
}

void products::quantize_scaled(const_float_rows dy, std::int64_t rows, const some_outs& outs) {
  inputs_.begin(static_cast<int>(rows), outs.count, input_bits::sixteen);
  const float* scales = reinterpret_cast<const float*>(outs.w.scales) + outs.first;
  const float* mids = reinterpret_cast<const float*>(outs.w.mids) + outs.first;
  const std::int64_t whole = rounded_up(outs.count, 16), padded = padded_row(outs.count);
  assert(padded <= row_width_);
  with_.pool.run_pieces(rows, rows_at_once, [&](std::int64_t first, std::int64_t count, int thread) {
    float* scaled = rows_scratch_.data() + thread * row_width_;
    for (std::int64_t r = first; r < first + count; ++r) {
      const float* row = dy.row(r) + outs.first;
      kernels_.scale(row, scales, whole, scaled);
      std::fill(scaled + outs.count, scaled + padded, 0.0f);
      constants_[to_size(r)] = static_cast<float>(kernels_.dot(row, mids, outs.count));
      inputs_.put(static_cast<int>(r), scaled);
    }
  });
}

void products::turned_product(const some_outs& outs, std::int64_t first_in, std::int64_t rows, float_rows dx, into how,
                              int thread) {
  const matrix_view& w = outs.w;
  const std::int64_t depth = padded_row(outs.count),
                     columns = std::min(turned_columns, rounded_up(w.ins - first_in, 16));
  std::byte* turned = turned_.data() + thread * turned_columns * (most_summed + 64);
  const auto* from = reinterpret_cast<const std::uint8_t*>(w.weights);
  for (std::int64_t out = 0; out < outs.count; out += 16)
    kernels_.turn_bytes(from + ((outs.first + out) * w.stored_ins() + first_in * 16), columns,
                        reinterpret_cast<std::uint8_t*>(turned) + out * 16, depth * 16);
  matmul_args job;
  job.w = {.kind = scheme::u8,
           .outs = columns,
           .ins = outs.count,
           .weights = turned,
           .scales = reinterpret_cast<const std::byte*>(ones_.data()),
           .mids = reinterpret_cast<const std::byte*>(zeros_.data())};
  job.rows = static_cast<int>(rows);
  job.y = dx.data + first_in;
  job.y_stride = dx.stride;
  job.q = inputs_.view();
  job.accumulate = how == into::add;
  multiply_blocks(with_.kernels, job, 0, columns / 16);
  const std::int64_t valid = std::min(columns, w.ins - first_in);
  for (std::int64_t r = 0; r < rows; ++r) {
    float* row = dx.row(r) + first_in;
    for (std::int64_t i = 0; i < valid; ++i) row[i] += constants_[to_size(r)];
    std::fill(row + valid, row + columns, 0.0f);
  }
}

}  // namespace troupe
