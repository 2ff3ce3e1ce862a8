// Latent attention: queries look for a short row of each position, and heads make their values of what they find.
#include <algorithm>

#include "model/train/passes/cpu_train_pass.hpp"

namespace troupe {

void cpu_train_pass::attend_latent(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in,
                                   float_rows out) {
  const trained_layer& weights = model_.layers[layer];
  const latent_config& latent = model_.config.latent;
  const float_rows normed = hidden_rows(normed_), queries = own_query_rows(own_queries_);
  if (latent.query_rank > 0) {
    apply(weights, normed, a, into::set, {{linear_kind::q_down, down_rows(a.down)}, {linear_kind::k, kv_rows(a.k)}});
    normalize_latent(weights, a);
    apply(weights, down_rows(normed_down_), a, into::set, {{linear_kind::q, queries}});
  } else {
    apply(weights, normed, a, into::set, {{linear_kind::q, queries}, {linear_kind::k, kv_rows(a.k)}});
    normalize_latent(weights, a);
  }
  copy_heads({queries, latent.query(), 0, latent.turned}, {query_rows(a.q), latent.row(), 0, latent.turned});
  multiply_heads(weights, &head_parts<trained_matrix>::query, {queries, latent.query(), latent.turned, latent.plain},
                 {query_rows(a.q), latent.row(), latent.turned, latent.rank});
  attention_.forward(with_, attention_input(batch, layer, a), query_rows(a.mixed));
  multiply_heads(weights, &head_parts<trained_matrix>::value,
                 {query_rows(a.mixed), latent.row(), latent.turned, latent.rank},
                 {given_rows(a.values), latent.value, 0, latent.value});
  add_output(weights, linear_kind::o, given_rows(a.values), a, in, out);
}

void cpu_train_pass::latent_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                                 std::pair<float_rows, into> to) {
  const trained_layer& weights = model_.layers[layer];
  const latent_config& latent = model_.config.latent;
  const float_rows mixed = query_rows(inner_), dq = query_rows(dq_), dk = kv_rows(dk_), dv = kv_rows(dv_);
  const float_rows dvalues = given_rows(dgiven_), dqueries = own_query_rows(own_queries_);
  apply_back(weights, given_rows(a.values), a, {{linear_kind::o, given}}, {dvalues, into::set});
  for_rows(rows_, [&](std::int64_t r, int) { std::fill_n(mixed.row(r), mixed.stride, 0.0f); });
  multiply_heads_back(weights, &head_parts<trained_matrix>::value, {dvalues, latent.value, 0, latent.value},
                      {mixed, latent.row(), latent.turned, latent.rank});
  normalize_latent(weights, a);
  attention_.backward(with_, attention_input(batch, layer, a), {mixed, dq, dk, dv});
  for_rows(rows_, [&](std::int64_t r, int) { with_.kernels.add(dv.row(r), strides_.kv, dk.row(r)); });
  normalize_kept_back(weights, a);
  copy_heads({dq, latent.row(), 0, latent.turned}, {dqueries, latent.query(), 0, latent.turned});
  multiply_heads_back(weights, &head_parts<trained_matrix>::query, {dq, latent.row(), latent.turned, latent.rank},
                      {dqueries, latent.query(), latent.turned, latent.plain});
  if (latent.query_rank == 0) return read_back(layer, a, {{linear_kind::q, dqueries}, {linear_kind::k, dk}}, to);
  apply_back(weights, down_rows(normed_down_), a, {{linear_kind::q, dqueries}}, {down_rows(ddown_), into::set});
  normalize_down_back(weights, a);
  read_back(layer, a, {{linear_kind::q_down, down_rows(ddown_)}, {linear_kind::k, dk}}, to);
}

void cpu_train_pass::normalize_latent(const trained_layer& weights, const activations& a) {
  const latent_config& latent = model_.config.latent;
  const float eps = model_.config.norm_eps;
  const float_rows kept = kv_rows(normed_k_), part = part_rows(part_);
  for_rows(rows_, [&](std::int64_t r, int) {
    std::copy_n(kv_rows(a.k).row(r), latent.row(), kept.row(r));
    std::fill_n(part.row(r), part.stride, 0.0f);
    std::copy_n(kept.row(r) + latent.turned, latent.rank, part.row(r));
    with_.kernels.rms_norm(part.row(r), weights.k_norm.weight, latent.rank, eps, part.row(r));
    std::copy_n(part.row(r), latent.rank, kept.row(r) + latent.turned);
    if (latent.query_rank > 0)
      with_.kernels.rms_norm(down_rows(a.down).row(r), weights.q_norm.weight, latent.query_rank, eps,
                             down_rows(normed_down_).row(r));
  });
}

void cpu_train_pass::normalize_kept_back(const trained_layer& weights, const activations& a) {
  const latent_config& latent = model_.config.latent;
  const float_rows part = part_rows(part_), gradient = part_rows(part_gradient_);
  for_rows(rows_, [&](std::int64_t r, int) {
    float* const own = kv_rows(dk_).row(r) + latent.turned;
    std::fill_n(part.row(r), part.stride, 0.0f);
    std::fill_n(gradient.row(r), gradient.stride, 0.0f);
    std::copy_n(kv_rows(a.k).row(r) + latent.turned, latent.rank, part.row(r));
    kernels_.rms_norm_back(part.row(r), weights.k_norm.weight, own, latent.rank, model_.config.norm_eps,
                           gradient.row(r), nullptr);
    std::copy_n(gradient.row(r), latent.rank, own);
  });
}

void cpu_train_pass::normalize_down_back(const trained_layer& weights, const activations& a) {
  const float_rows down = down_rows(ddown_), normed = down_rows(normed_down_);  // whose place is free by now
  for_rows(rows_, [&](std::int64_t r, int) {
    std::fill_n(normed.row(r), normed.stride, 0.0f);
    kernels_.rms_norm_back(down_rows(a.down).row(r), weights.q_norm.weight, down.row(r),
                           model_.config.latent.query_rank, model_.config.norm_eps, normed.row(r), nullptr);
    std::copy_n(normed.row(r), normed.stride, down.row(r));
  });
}

void cpu_train_pass::copy_heads(const head_columns& from, const head_columns& to) {
  for_rows(rows_, [&](std::int64_t r, int) {
    for (std::int64_t head = 0; head < model_.config.heads; ++head)
      std::copy_n(from.rows.row(r) + head * from.step + from.first, from.count,
                  to.rows.row(r) + head * to.step + to.first);
  });
}

void cpu_train_pass::multiply_heads(const trained_layer& weights, trained_matrix head_parts<trained_matrix>::*by,
                                    const head_columns& from, const head_columns& to) {
  const float_rows part = part_rows(part_);
  for (std::size_t head = 0; head < weights.heads.size(); ++head) {
    const std::int64_t at = static_cast<std::int64_t>(head) * from.step + from.first;
    for_rows(rows_, [&](std::int64_t r, int) {
      std::copy_n(from.rows.row(r) + at, from.count, part.row(r));
      std::fill(part.row(r) + from.count, part.row(r + 1), 0.0f);
    });
    float* const first = to.rows.data + static_cast<std::int64_t>(head) * to.step + to.first;
    const products::output output{&(weights.heads[head].*by), nullptr, {first, to.rows.stride}};
    body_.forward(part, rows_, {&output, 1});
  }
}

void cpu_train_pass::multiply_heads_back(const trained_layer& weights, trained_matrix head_parts<trained_matrix>::*by,
                                         const head_columns& from, const head_columns& to) {
  const float_rows part = part_rows(part_);
  for (std::size_t head = 0; head < weights.heads.size(); ++head) {
    const float* first = from.rows.data + static_cast<std::int64_t>(head) * from.step + from.first;
    body_.backward({first, from.rows.stride}, rows_, weights.heads[head].*by, part, into::set);
    const std::int64_t at = static_cast<std::int64_t>(head) * to.step + to.first;
    for_rows(rows_, [&](std::int64_t r, int) { std::copy_n(part.row(r), to.count, to.rows.row(r) + at); });
  }
}

}  // namespace troupe
