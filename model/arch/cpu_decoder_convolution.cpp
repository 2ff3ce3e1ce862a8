// A layer of short convolutions: each row sees a few before it, of which the sequence's state is made.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/arch/cpu_decoder.hpp"

namespace troupe {

static_assert(longest_convolution <= most_convolved_rows);

void cpu_decoder::take_convolution_memory() {
  const std::int64_t columns = 3 * model_->config.hidden;
  convolution_.in_stride = padded_row(columns);
  convolution_.in = floats(options_.max_rows, convolution_.in_stride);
  convolution_.out = floats(options_.max_rows, hidden_stride());
  convolution_.columns = cut_blocks(gather_.split(), columns);
}

void cpu_decoder::run_convolution(const pass& batch, std::int64_t layer, float_rows hidden) {
  const layer_weights& weights = weights_of(layer);
  const float_rows normed{normed_.data(), hidden_stride()}, out{convolution_.out.data(), hidden_stride()};
  const linear_product in[] = {{linear_kind::convolution_in,
                                weights.convolution_in,
                                {convolution_.in.data(), convolution_.in_stride},
                                convolution_.columns}};
  prepare_input(batch.rows, normed, in,
                [&](int row) { normalize(weights.attention_norm, hidden.row(row), normed.row(row)); });
  multiply(batch, layer, normed, in);
  constexpr std::int64_t together = 64;
  const std::int64_t columns = model_->config.hidden;
  for_parts(batch, ceil_div(columns, together), [&](const pass_sequence& sequence, std::int64_t part) {
    const std::int64_t first = part * together;
    convolve_columns(sequence, layer, first, std::min(together, columns - first));
  });
  const linear_product products[] = {output_product(linear_kind::convolution_out, weights.convolution_out, hidden)};
  prepare_input(batch.rows, out, products, [](int) {});
  multiply(batch, layer, out, products);
}

void cpu_decoder::convolve_columns(const pass_sequence& sequence, std::int64_t layer, std::int64_t first,
                                   std::int64_t columns) {
  const std::int64_t hidden = model_->config.hidden, kernel = model_->config.convolved_rows;
  float* const before = states_.at(layer, sequence.state) + first;
  if (sequence.position == 0)
    for (std::int64_t row = 0; row < kernel - 1; ++row) std::fill_n(before + row * hidden, columns, 0.0f);
  const float* const b = convolution_.in.data() + sequence.first_row * convolution_.in_stride + first;
  with_.kernels.short_convolve({.weights = weights_of(layer).convolution + first,
                                .weight_stride = hidden_stride(),
                                .kernel = static_cast<int>(kernel),
                                .channels = columns,
                                .b = b,
                                .c = b + hidden,
                                .x = b + 2 * hidden,
                                .row_stride = convolution_.in_stride,
                                .rows = sequence.rows,
                                .out = convolution_.out.data() + sequence.first_row * hidden_stride() + first,
                                .out_stride = hidden_stride(),
                                .before = before,
                                .before_stride = hidden});
}

}  // namespace troupe
