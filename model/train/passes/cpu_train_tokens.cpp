#include "model/train/passes/cpu_train_tokens.hpp"

#include <algorithm>

#include "model/arch/token_numbers.hpp"
#include "model/ops/pack.hpp"

namespace troupe {

/// All of it is frozen.
void cpu_train_tokens::bring(const training_rows& batch, const_float_rows embedded) {
  if (config_.layer_embedding == 0) return;
  const trained_model& model = rows_.model();
  const float_rows numbers = scratch_.token_numbers;
  const products::output projection{&model.token_projection, nullptr, numbers};
  rows_.body().forward(embedded, rows_.count(), {&projection, 1});
  thread_pool& pool = rows_.with().pool;
  const row_memory looked_up(pool.threads(), padded_row(config_.layers * config_.layer_embedding));
  pool.run(static_cast<int>(rows_.count()), [&](int r, int thread) {
    float* const own = looked_up.row(thread);
    unpack_row(model.token_embeddings.packed, batch.tokens[to_size(r)], own);
    join_token_numbers(rows_.kernels(), config_, model.token_projection_norm.weight, own, numbers.row(r));
  });
}

/// scratch().token_active of the gates.
void cpu_train_tokens::let_through(const layer_rows& at) const {
  rows_.for_each([&](std::int64_t r) {
    rows_.kernels().geglu(at.a.token_gates.row(r), numbers_of(at, r), config_.layer_embedding,
                          scratch_.token_active.row(r));
  });
}

void cpu_train_tokens::forward(const layer_rows& at, const_float_rows fed, float_rows out) {
  if (at.weights.token_out.w.outs > 0) {
    rows_.apply(at, fed, into::set, {{linear_kind::token_gate, at.a.token_gates}});
    let_through(at);
    rows_.apply(at, scratch_.token_active, into::set, {{linear_kind::token_out, at.a.token_made}});
    if (out.data) rows_.add_normalized(at.weights.token_norm, fed, at.a.token_made, out);
  } else if (out.data) {
    rows_.copy(fed, out);
  }
  if (out.data) multiply(out, at.weights.factor);
}

/// Nothing where there is no factor.
void cpu_train_tokens::multiply(float_rows rows, const float* factor) const {
  if (factor) rows_.for_each([&](std::int64_t r) { rows_.kernels().multiply(rows.row(r), config_.hidden, *factor); });
}

void cpu_train_tokens::backward(const layer_rows& at) {
  const trained_layer& weights = at.weights;
  const float_rows gradient = scratch_.gradient, fed = scratch_.finished;
  multiply(gradient, weights.factor);
  if (weights.token_out.w.outs == 0) return;
  rows_.add_normalized(weights.mlp_output_norm, rows_.middle_of(at.a), at.a.fed, fed);
  const const_float_rows given = rows_.output_gradient(weights.token_norm, at.a.token_made);
  const float_rows active = scratch_.token_active, gates = at.a.token_gates;
  const std::int64_t width = config_.layer_embedding;
  let_through(at);
  rows_.apply_back(at, active, {{linear_kind::token_out, given}}, {scratch_.dtoken_active});
  rows_.for_each([&](std::int64_t r) {  // gates become their gradients, and the numbers need none
    std::copy_n(numbers_of(at, r), width, active.row(r));
    rows_.train_kernels().geglu_back(scratch_.dtoken_active.row(r), width, gates.row(r), active.row(r));
  });
  rows_.apply_back(at, fed, {{linear_kind::token_gate, gates}}, {gradient, into::add});
}

}  // namespace troupe
