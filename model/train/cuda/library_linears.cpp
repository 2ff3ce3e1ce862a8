#include "model/train/cuda/library_linears.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::int64_t least_weights = 1 << 24;  // that there is room for: then the head has few pieces
constexpr std::int64_t piece_unit = 64;          // outputs; packed parts of so many lie one behind the other

/// The widest layers of a model, padded.
struct widths {
  std::int64_t ins = 0, outs = 0;

  explicit widths(const trained_model& model) {
    const auto add = [this](const matrix_view& w) {
      ins = std::max(ins, padded_row(w.ins));
      outs = std::max(outs, rounded_up(w.outs, piece_unit));
    };
    for (const layer_weights& layer : model.base->layers)
      for (const linear_kind kind : every_linear) add(layer[kind].w);
    ins = std::max(ins, padded_row(model.config.hidden));
  }
};

/// A rank as the library multiplies it: tensor cores want whole eights. What is behind the factors' own is zeros.
std::int64_t whole_rank(std::int64_t rank) {
  return rounded_up(rank, 8);
}

/// Behind and below a layer's weights.
std::int64_t rank_room_of(const trained_model& model) {
  return padded_row(largest_rank(model));
}

std::int64_t size_of(const matrix_view& w, std::int64_t rank_room) {
  return w.outs > 0 ? (padded_outs(w.outs) + rank_room) * (padded_row(w.ins) + rank_room) : 0;
}

/// All matrices that a library multiplies.
template <class Weights>
std::vector<matrix_view> matrices_of(const Weights& weights) {
  std::vector<matrix_view> all{weights.head};
  for (const layer_weights& layer : weights.layers)
    for (const linear_kind kind : every_linear) all.push_back(layer[kind].w);
  std::erase_if(all, [](const matrix_view& w) { return w.outs == 0 || w.kind == scheme::f32; });
  return all;
}

std::int64_t weights_of_all(const trained_model& model) {
  std::int64_t sum = 0;
  for (const matrix_view& w : matrices_of(*model.base)) sum += size_of(w, rank_room_of(model));
  return sum;
}

std::int64_t most_weights(const trained_model& model) {
  const std::int64_t rank_room = rank_room_of(model);
  std::int64_t most = std::max(least_weights, piece_unit * (padded_row(model.config.hidden) + rank_room));
  for (const layer_weights& layer : model.base->layers)
    for (const linear_kind kind : every_linear) most = std::max(most, size_of(layer[kind].w, rank_room));
  return most;
}

}  // namespace

library_linears::library_linears(std::unique_ptr<cuda::float_library> library, const trained_model& model,
                                 const device_weights& weights, std::int64_t most_rows, bool keeps)
    : library_(std::move(library)), rank_room_(rank_room_of(model)) {
  const widths most(model);
  inputs_ = cuda::device_buffer<std::uint16_t>(to_size(most_rows * (most.ins + rank_room_)));
  dropped_ = cuda::device_buffer<std::uint16_t>(inputs_.size());
  for (auto& each : gradients_)
    each = cuda::device_buffer<std::uint16_t>(to_size(most_rows * (most.outs + rank_room_)));
  weights_ = cuda::device_buffer<std::uint16_t>(to_size(most_weights(model)));
  if (keeps) keep(model, weights);
}

std::int64_t library_linears::kept_bytes(const trained_model& model) {
  return weights_of_all(model) * static_cast<std::int64_t>(sizeof(std::uint16_t));
}

void library_linears::keep(const trained_model& model, const device_weights& weights) {
  try {
    all_weights_ = cuda::device_buffer<std::uint16_t>(to_size(weights_of_all(model)));
  } catch (const std::bad_alloc&) {  // others have taken it meanwhile, or the rows of this pass
    return;
  }
  std::uint16_t* next = all_weights_.data();
  for (const matrix_view& w : matrices_of(weights)) {
    kept_[w.weights] = {.packed = w, .rows = {next, padded_row(w.ins) + rank_room_}};
    next += size_of(w, rank_room_);
  }
}

cuda::bf16_rows library_linears::inputs(std::int64_t ins) const {
  return {inputs_.data(), padded_row(ins) + rank_room_};
}

cuda::bf16_rows library_linears::gradients(std::int64_t outs, int which) const {
  return {gradients_[to_size(which)].data(), padded_outs(outs) + rank_room_};
}

library_linears::kept_weights* library_linears::kept(const matrix_view& w) {
  const auto after = kept_.upper_bound(w.weights);
  if (after == kept_.begin()) return nullptr;
  kept_weights& before = std::prev(after)->second;
  const auto bytes = packed_bytes(before.packed.kind, before.packed.outs, before.packed.ins).weights;
  return w.weights < before.packed.weights + bytes ? &before : nullptr;
}

cuda::bf16_rows library_linears::weights(const matrix_view& w) {
  const kept_weights* all = kept(w);
  if (!all) return {weights_.data(), padded_row(w.ins) + rank_room_};
  const std::int64_t block = (w.weights - all->packed.weights) / packed_block_bytes(w.kind, w.stored_ins());
  return all->rows.from(block * outs_per_block, 0);
}

void library_linears::unpack(const cuda::stream& on, const matrix_view& w) {
  kept_weights* const all = kept(w);
  if (!all) return cuda::unpack_bf16(on, w, weights(w));
  if (!std::exchange(all->is_unpacked, true)) cuda::unpack_bf16(on, all->packed, all->rows);
}

void library_linears::read(const cuda::stream& on, const_float_rows x, int rows, std::int64_t n) {
  cuda::round_rows(on, x, rows, n, padded_row(n), inputs(n));
}

// ---- forward ----

void library_linears::forward(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, float_rows y,
                              into how) {
  if (l.rank > 0) adapter_forward(on, l, r);
  if (!y.data) return;
  cuda::bf16_product product = forward_product(on, l, r.rows);
  if (l.bias) cuda::put_bias(on, l.bias, r.rows, l.w.outs, y, std::exchange(how, into::add));
  product.sums = y, product.how = how, product.before = r.before;
  library_->multiply(on, product);
}

void library_linears::forward(const cuda::stream& on, const device_linear& l, const rows_of_layer& r,
                              cuda::bf16_rows y) {
  if (l.rank > 0) adapter_forward(on, l, r);
  cuda::bf16_product product = forward_product(on, l, r.rows);
  product.rounded = y.data, product.sums.stride = y.stride;
  library_->multiply(on, product);
}

void library_linears::adapter_forward(const cuda::stream& on, const device_linear& l, const rows_of_layer& r) {
  const std::int64_t ins = padded_row(l.w.ins);
  const cuda::bf16_rows between = inputs(l.w.ins).from(0, ins);
  put_factors(on, l);
  library_->multiply(on, {.rows = r.rows,
                          .columns = whole_rank(l.rank),
                          .depth = ins,
                          .a = adapter_inputs(on, l, r).factor(),
                          .b = weights(l.w).from(padded_outs(l.w.outs), 0).factor(true),
                          .sums = {nullptr, between.stride},
                          .rounded = between.data});
  cuda::copy_rows(on, between, r.rows, whole_rank(l.rank), cuda::in_place_of(l.between));
}

cuda::bf16_product library_linears::forward_product(const cuda::stream& on, const device_linear& l, int rows) {
  unpack(on, l.w);
  return {.rows = rows,
          .columns = l.w.outs,
          .depth = padded_row(l.w.ins) + whole_rank(l.rank),
          .a = inputs(l.w.ins).factor(),
          .b = weights(l.w).factor(true)};
}

// ---- back ----

void library_linears::back(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, const_float_rows dy,
                           float_rows dx, into how) {
  factors_back(on, l, r, dy);
  if (!dx.data) return;
  cuda::bf16_product product = back_product(on, l, r);
  product.sums = dx, product.how = how;
  library_->multiply(on, product);
  if (l.rank > 0 && r.dropped.data)
    library_->multiply(on, {.rows = r.rows,
                            .columns = l.w.ins,
                            .depth = whole_rank(l.rank),
                            .a = gradients(l.w.outs, r.gradients).from(0, padded_outs(l.w.outs)).factor(),
                            .b = weights(l.w).from(padded_outs(l.w.outs), 0).factor(),
                            .sums = r.dropped});
}

void library_linears::back(const cuda::stream& on, const device_linear& l, const rows_of_layer& r, const_float_rows dy,
                           cuda::bf16_rows dx) {
  factors_back(on, l, r, dy);
  cuda::bf16_product product = back_product(on, l, r);
  product.rounded = dx.data, product.sums.stride = dx.stride;
  library_->multiply(on, product);
}

/// dy to its place and, if there is an adapter, `inner` behind it; then the gradients of both factors.
void library_linears::factors_back(const cuda::stream& on, const device_linear& l, const rows_of_layer& r,
                                   const_float_rows dy_rows) {
  const cuda::bf16_rows dy = gradients(l.w.outs, r.gradients), inner = dy.from(0, padded_outs(l.w.outs));
  if (dy_rows.data) cuda::round_rows(on, dy_rows, r.rows, l.w.outs, padded_outs(l.w.outs), dy);
  if (l.rank == 0) return;
  if (!kept(l.w)) put_factors(on, l);  // else they are there since the way forward
  library_->multiply(on, {.rows = r.rows,
                          .columns = whole_rank(l.rank),
                          .depth = l.w.outs,
                          .a = dy.factor(),
                          .b = weights(l.w).from(0, padded_row(l.w.ins)).factor(),
                          .sums = {nullptr, inner.stride},
                          .rounded = inner.data});
  library_->multiply(on, {.rows = l.w.outs,
                          .columns = l.rank,
                          .depth = r.rows,
                          .a = dy.factor(true),
                          .b = cuda::in_place_of(l.between).factor(),
                          .sums = l.b_gradient,
                          .factor = l.scale,
                          .how = into::add});
  library_->multiply(on, {.rows = l.rank,
                          .columns = l.w.ins,
                          .depth = r.rows,
                          .a = inner.factor(true),
                          .b = adapter_inputs(on, l, r).factor(),
                          .sums = l.a_gradient,
                          .how = into::add});
}

cuda::bf16_product library_linears::back_product(const cuda::stream& on, const device_linear& l,
                                                 const rows_of_layer& r) {
  unpack(on, l.w);
  return {.rows = r.rows,
          .columns = l.w.ins,
          .depth = padded_outs(l.w.outs) + (r.dropped.data ? 0 : whole_rank(l.rank)),
          .a = gradients(l.w.outs, r.gradients).factor(),
          .b = weights(l.w).factor()};
}

// ---- what both ways share ----

cuda::bf16_rows library_linears::adapter_inputs(const cuda::stream& on, const device_linear& l,
                                                const rows_of_layer& r) const {
  if (!r.dropped.data) return inputs(l.w.ins);
  const cuda::bf16_rows dropped{dropped_.data(), padded_row(l.w.ins)};
  cuda::round_rows(on, r.dropped, r.rows, l.w.ins, padded_row(l.w.ins), dropped);
  return dropped;
}

/// B beside the weights, A below them.
void library_linears::put_factors(const cuda::stream& on, const device_linear& l) {
  const std::int64_t ins = padded_row(l.w.ins);
  const cuda::bf16_rows w = weights(l.w);
  const cuda::bf16_rows below = w.from(padded_outs(l.w.outs), 0), behind = below.from(l.rank, 0);
  cuda::round_rows(on, l.b, l.w.outs, l.rank, whole_rank(l.rank), w.from(0, ins), l.scale);
  cuda::round_rows(on, l.a, l.rank, l.w.ins, ins, below);
  cuda::clear(behind.data, to_size((whole_rank(l.rank) - l.rank) * behind.stride) * sizeof(std::uint16_t), on);
}

// ---- without an adapter ----

void library_linears::multiply(const cuda::stream& on, const cuda::weight_product& product) {
  const matrix_view& w = product.w;
  const std::int64_t room = std::min(static_cast<std::int64_t>(weights_.size()) / (padded_row(w.ins) + rank_room_),
                                     static_cast<std::int64_t>(gradients_[0].size()) / product.rows - rank_room_);
  const std::int64_t piece = std::max(room / piece_unit, std::int64_t{1}) * piece_unit;
  if (!product.turned) read(on, product.x, product.rows, w.ins);
  for (std::int64_t first = 0; first < w.outs; first += piece) {
    cuda::weight_product part = product;
    part.w = outputs_of(w, first, std::min(piece, w.outs - first));
    if (part.bias) part.bias += first;
    if (product.turned) {
      part.x.data += first;
      if (first > 0) part.how = into::add;
      back_piece(on, part);
    } else {
      part.y.data += first;
      forward_piece(on, part);
    }
  }
}

void library_linears::forward_piece(const cuda::stream& on, const cuda::weight_product& product) {
  forward(on, {.w = product.w, .bias = product.bias}, {.rows = product.rows}, product.y, product.how);
}

void library_linears::back_piece(const cuda::stream& on, const cuda::weight_product& product) {
  back(on, {.w = product.w}, {.rows = product.rows}, product.x, product.y, product.how);
}

}  // namespace troupe
