#include "model/arch/cpu/cpu_tokens.hpp"

#include "model/arch/token_numbers.hpp"
#include "model/ops/pack.hpp"

namespace troupe {

cpu_tokens::cpu_tokens(cpu_products& products, const decoder::options& chosen)
    : products_(products),
      config_(products.config()),
      number_columns_(cut_blocks({}, config_.layers * config_.layer_embedding)),
      gate_columns_(cut_blocks({}, config_.layer_embedding)),
      numbers_(chosen.max_rows, padded_row(config_.layers * config_.layer_embedding)),
      looked_up_(products.pool().threads(), numbers_.stride()),
      gates_(chosen.max_rows, padded_row(config_.layer_embedding)) {}

void cpu_tokens::bring(const pass& batch, std::span<const std::int32_t> tokens, float_rows embedded) {
  const loaded_model& model = products_.model();
  const linear_weights projection{model.token_projection, nullptr};
  products_.multiply_alone(batch.rows, embedded, {std::nullopt, projection, numbers_, number_columns_}, [](int) {});
  products_.pool().run(batch.rows, [&](int row, int thread) {
    float* const own = looked_up_.row(thread);
    unpack_row(model.token_embeddings, tokens[to_size(row)], own);
    join_token_numbers(products_.kernels(), config_, model.token_projection_norm.weight, own, numbers_.row(row));
  });
}

void cpu_tokens::add(const layer_pass& at) {
  const std::int64_t width = config_.layer_embedding, first = at.layer * width;
  const linear_product in[] = {{linear_kind::token_gate, at.weights.token_gate, gates_, gate_columns_}};
  products_.multiply(at, at.hidden, in, [](int) {});
  const linear_product out[] = {products_.output_product(linear_kind::token_out, at.weights.token_out, at.hidden)};
  products_.multiply(at, gates_, out, [&](int row) {
    products_.kernels().geglu(gates_.row(row), numbers_.row(row) + first, width, gates_.row(row));
  });
  products_.finish_output(at, at.weights.token_norm);
}

}  // namespace troupe
