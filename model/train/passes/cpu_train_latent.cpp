#include "model/train/passes/cpu_train_latent.hpp"

#include <algorithm>

namespace troupe {

cpu_train_latent::cpu_train_latent(cpu_train_rows& rows)
    : rows_(rows),
      config_(rows.config()),
      latent_(config_.latent),
      scratch_(rows.scratch()),
      attention_(config_, config_.usual_heads(), rows.options().most_positions, rows.with().pool.threads()) {}

void cpu_train_latent::forward(const layer_rows& at, float_rows out) {
  using enum linear_kind;
  const float_rows queries = scratch_.own_queries;
  if (latent_.query_rank > 0) {
    rows_.apply(at, scratch_.normed, into::set, {{q_down, at.a.down}, {k, at.a.k}});
    normalize(at);
    rows_.apply(at, scratch_.normed_down, into::set, {{q, queries}});
  } else {
    rows_.apply(at, scratch_.normed, into::set, {{q, queries}, {k, at.a.k}});
    normalize(at);
  }
  copy_heads({queries, latent_.query(), 0, latent_.turned}, {at.a.q, latent_.row(), 0, latent_.turned});
  multiply_heads(at, &head_parts<trained_matrix>::query, {queries, latent_.query(), latent_.turned, latent_.plain},
                 {at.a.q, latent_.row(), latent_.turned, latent_.rank});
  attention_.forward(rows_.with(), input_of(at), at.a.mixed);
  multiply_heads(at, &head_parts<trained_matrix>::value, {at.a.mixed, latent_.row(), latent_.turned, latent_.rank},
                 {at.a.values, latent_.value, 0, latent_.value});
  rows_.add_output(at, o, at.a.values, at.in, out);
}

void cpu_train_latent::backward(const layer_rows& at, const_float_rows given, gradient_target to) {
  using enum linear_kind;
  const float_rows mixed = scratch_.inner.as(rows_.strides().q);
  const float_rows dq = scratch_.dq, dk = scratch_.dk, dv = scratch_.dv;
  const float_rows dvalues = scratch_.dgiven, dqueries = scratch_.own_queries;
  rows_.apply_back(at, at.a.values, {{o, given}}, {dvalues});
  rows_.clear(mixed);
  multiply_heads_back(at, &head_parts<trained_matrix>::value, {dvalues, latent_.value, 0, latent_.value},
                      {mixed, latent_.row(), latent_.turned, latent_.rank});
  normalize(at);
  attention_.backward(rows_.with(), input_of(at), {mixed, dq, dk, dv});
  rows_.for_each([&](std::int64_t r) { rows_.kernels().add(dv.row(r), dv.stride, dk.row(r)); });
  normalize_kept_back(at);
  copy_heads({dq, latent_.row(), 0, latent_.turned}, {dqueries, latent_.query(), 0, latent_.turned});
  multiply_heads_back(at, &head_parts<trained_matrix>::query, {dq, latent_.row(), latent_.turned, latent_.rank},
                      {dqueries, latent_.query(), latent_.turned, latent_.plain});
  if (latent_.query_rank == 0) return rows_.read_back(at, {{q, dqueries}, {k, dk}}, to);
  rows_.apply_back(at, scratch_.normed_down, {{q, dqueries}}, {scratch_.ddown});
  normalize_down_back(at);
  rows_.read_back(at, {{q_down, scratch_.ddown}, {k, dk}}, to);
}

segment_attention::input cpu_train_latent::input_of(const layer_rows& at) const {
  return {.batch = at.batch,
          .layer = at.weights,
          .k_norm = at.weights.k_norm,
          .window = config_.window_of(at.layer),
          .rope = config_.rope_of(at.layer),
          .q = at.a.q,
          .k = scratch_.normed_k,
          .v = scratch_.normed_k};
}

void cpu_train_latent::normalize(const layer_rows& at) {
  const kernel_table& kernels = rows_.kernels();
  const float_rows kept = scratch_.normed_k, part = scratch_.part;
  rows_.for_each([&](std::int64_t r) {
    std::copy_n(at.a.k.row(r), latent_.row(), kept.row(r));
    std::fill_n(part.row(r), part.stride, 0.0f);
    std::copy_n(kept.row(r) + latent_.turned, latent_.rank, part.row(r));
    kernels.rms_norm(part.row(r), at.weights.k_norm.weight, latent_.rank, config_.norm_eps, part.row(r));
    std::copy_n(part.row(r), latent_.rank, kept.row(r) + latent_.turned);
    if (latent_.query_rank > 0)
      kernels.rms_norm(at.a.down.row(r), at.weights.q_norm.weight, latent_.query_rank, config_.norm_eps,
                       scratch_.normed_down.row(r));
  });
}

void cpu_train_latent::normalize_kept_back(const layer_rows& at) {
  const float_rows part = scratch_.part, gradient = scratch_.dpart;
  rows_.for_each([&](std::int64_t r) {
    float* const own = scratch_.dk.row(r) + latent_.turned;
    std::fill_n(part.row(r), part.stride, 0.0f);
    std::fill_n(gradient.row(r), gradient.stride, 0.0f);
    std::copy_n(at.a.k.row(r) + latent_.turned, latent_.rank, part.row(r));
    rows_.train_kernels().rms_norm_back(part.row(r), at.weights.k_norm.weight, own, latent_.rank, config_.norm_eps,
                                        gradient.row(r), nullptr);
    std::copy_n(gradient.row(r), latent_.rank, own);
  });
}

void cpu_train_latent::normalize_down_back(const layer_rows& at) {
  const float_rows down = scratch_.ddown, normed = scratch_.normed_down;  // whose place is free by now
  rows_.for_each([&](std::int64_t r) {
    std::fill_n(normed.row(r), normed.stride, 0.0f);
    rows_.train_kernels().rms_norm_back(at.a.down.row(r), at.weights.q_norm.weight, down.row(r), latent_.query_rank,
                                        config_.norm_eps, normed.row(r), nullptr);
    std::copy_n(normed.row(r), normed.stride, down.row(r));
  });
}

void cpu_train_latent::copy_heads(const head_columns& from, const head_columns& to) {
  rows_.for_each([&](std::int64_t r) {
    for (std::int64_t head = 0; head < config_.heads; ++head)
      std::copy_n(from.rows.row(r) + head * from.step + from.first, from.count,
                  to.rows.row(r) + head * to.step + to.first);
  });
}

void cpu_train_latent::multiply_heads(const layer_rows& at, trained_matrix head_parts<trained_matrix>::*by,
                                      const head_columns& from, const head_columns& to) {
  const float_rows part = scratch_.part;
  for (std::int64_t head = 0; head < config_.heads; ++head) {
    const std::int64_t column = head * from.step + from.first;
    rows_.for_each([&](std::int64_t r) {
      std::copy_n(from.rows.row(r) + column, from.count, part.row(r));
      std::fill(part.row(r) + from.count, part.row(r + 1), 0.0f);
    });
    float* const first = to.rows.data + head * to.step + to.first;
    const products::output output{&(at.weights.heads[to_size(head)].*by), nullptr, {first, to.rows.stride}};
    rows_.body().forward(part, rows_.count(), {&output, 1});
  }
}

void cpu_train_latent::multiply_heads_back(const layer_rows& at, trained_matrix head_parts<trained_matrix>::*by,
                                           const head_columns& from, const head_columns& to) {
  const float_rows part = scratch_.part;
  for (std::int64_t head = 0; head < config_.heads; ++head) {
    const float* first = from.rows.data + head * from.step + from.first;
    rows_.body().backward({first, from.rows.stride}, rows_.count(), at.weights.heads[to_size(head)].*by, part,
                          into::set);
    const std::int64_t column = head * to.step + to.first;
    rows_.for_each([&](std::int64_t r) { std::copy_n(part.row(r), to.count, to.rows.row(r) + column); });
  }
}

}  // namespace troupe
