#include "model/arch/cpu/cpu_convolution.hpp"

#include "model/arch/cpu/sequence_parts.hpp"

namespace troupe {

static_assert(longest_convolution <= most_convolved_rows);

cpu_convolution::cpu_convolution(cpu_products& products, const state_storage& states, const decoder::options& chosen)
    : products_(products),
      states_(states),
      in_columns_(cut_blocks(products.split(), 3 * products.config().hidden)),
      in_(chosen.max_rows, padded_row(3 * products.config().hidden)),
      out_(chosen.max_rows, products.hidden_stride()) {}

void cpu_convolution::run(const layer_pass& at) {
  const linear_product in[] = {{linear_kind::convolution_in, at.weights.convolution_in, in_, in_columns_}};
  products_.multiply_normed(at, at.weights.attention_norm, in);
  constexpr std::int64_t together = 64;
  const std::int64_t columns = products_.config().hidden;
  for_sequence_parts(products_.pool(), at.batch, ceil_div(columns, together),
                     [&](const pass_sequence& sequence, std::int64_t part) {
                       const std::int64_t first = part * together;
                       convolve(at, sequence, first, std::min(together, columns - first));
                     });
  const linear_product out[] = {
      products_.output_product(linear_kind::convolution_out, at.weights.convolution_out, at.hidden)};
  products_.multiply(at, out_, out, [](int) {});
}

void cpu_convolution::convolve(const layer_pass& at, const pass_sequence& sequence, std::int64_t first,
                               std::int64_t columns) const {
  const std::int64_t hidden = products_.config().hidden, kernel = products_.config().convolved_rows;
  float* const before = states_.at(at.layer, sequence.state) + first;
  if (sequence.position == 0)
    for (std::int64_t row = 0; row < kernel - 1; ++row) std::fill_n(before + row * hidden, columns, 0.0f);
  const float* const b = in_.row(sequence.first_row) + first;
  products_.kernels().short_convolve({.columns = {.weights = at.weights.convolution + first,
                                                  .weight_stride = products_.hidden_stride(),
                                                  .kernel = static_cast<int>(kernel),
                                                  .count = columns},
                                      .b = b,
                                      .c = b + hidden,
                                      .x = b + 2 * hidden,
                                      .row_stride = in_.stride(),
                                      .rows = sequence.rows,
                                      .out = out_.row(sequence.first_row) + first,
                                      .out_stride = out_.stride(),
                                      .before = before,
                                      .before_stride = hidden});
}

}  // namespace troupe
