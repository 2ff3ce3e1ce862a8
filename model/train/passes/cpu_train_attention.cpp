#include "model/train/passes/cpu_train_attention.hpp"

#include <algorithm>

namespace troupe {

cpu_train_attention::cpu_train_attention(cpu_train_rows& rows)
    : rows_(rows),
      config_(rows.config()),
      scratch_(rows.scratch()),
      attention_(config_, config_.usual_heads(), rows.options().most_positions, rows.with().pool.threads()) {
  const train_pass::options& chosen = rows.options();
  if (config_.has_two_kinds_of_heads())
    wide_attention_.emplace(config_, config_.global_heads(), chosen.most_positions, rows.with().pool.threads());
  if (config_.sharing_layers == 0) return;
  for (shared_rows& each : shared_)
    for (row_memory* memory : {&each.k, &each.v, &each.dk, &each.dv})
      *memory = row_memory(chosen.most_rows, rows.strides().kv);
}

void cpu_train_attention::begin_back() {
  for (shared_rows& each : shared_) each.dk.clear(), each.dv.clear();
}

void cpu_train_attention::forward(const layer_rows& at, float_rows out) {
  using enum linear_kind;
  rows_.apply(at, scratch_.normed, into::set, {{q, at.a.q}, {k, at.a.k}, {v, at.a.v}});
  normalize_heads(at);
  share_keys(at);
  attention_of(at).forward(rows_.with(), input_of(at), at.a.mixed);
  end_heads(at.a.mixed, at.weights.o.w.ins);
  open_gates(at);
  rows_.add_output(at, o, at.a.mixed, at.in, out);
}

void cpu_train_attention::backward(const layer_rows& at, const_float_rows given, gradient_target to) {
  using enum linear_kind;
  const float_rows mixed = scratch_.inner.as(rows_.strides().q);
  const float_rows dq = scratch_.dq, dk = scratch_.dk, dv = scratch_.dv;
  rows_.apply_back(at, at.a.mixed, {{o, given}}, {mixed});
  gates_back(at, mixed);
  normalize_heads(at);
  attention_of(at).backward(rows_.with(), input_of(at), {mixed, dq, dk, dv});
  add_shared_gradients(at);
  if (!config_.has_values(at.layer))
    rows_.for_each([&](std::int64_t r) { rows_.kernels().add(dv.row(r), dv.stride, dk.row(r)); });
  normalize_heads_back(at);
  for (const auto& [kind, gradient] : {std::pair{q, dq}, std::pair{k, dk}, std::pair{v, dv}})
    end_heads(gradient, at.weights[kind].w.outs);
  rows_.read_back(at, {{q, dq}, {k, dk}, {v, dv}}, to);
}

segment_attention::input cpu_train_attention::input_of(const layer_rows& at) const {
  const std::int64_t source = config_.keys_of(at.layer);
  const shared_rows* shared = config_.shares_keys(at.layer) ? &shared_[to_size(config_.rope_of(at.layer))] : nullptr;
  const row_memory& k = shared ? shared->k : config_.joint_qk_norm ? scratch_.normed_k : at.a.k;
  const row_memory& v = shared ? shared->v : at.a.v;
  return {.batch = at.batch,
          .layer = at.weights,
          .k_norm = rows_.model().layers[to_size(source)].k_norm,
          .window = config_.window_of(at.layer),
          .rope = config_.rope_of(at.layer),
          .q = config_.joint_qk_norm ? scratch_.normed_q : at.a.q,
          .k = k,
          .v = config_.has_values(source) ? v : k};
}

void cpu_train_attention::normalize_heads(const layer_rows& at) {
  if (!config_.joint_qk_norm) return;
  const kernel_table& kernels = rows_.kernels();
  rows_.for_each([&](std::int64_t r) {
    kernels.rms_norm(at.a.q.row(r), at.weights.q_norm.weight, config_.q_norm_size(0), config_.norm_eps,
                     scratch_.normed_q.row(r));
    kernels.rms_norm(at.a.k.row(r), at.weights.k_norm.weight, config_.k_norm_size(0), config_.norm_eps,
                     scratch_.normed_k.row(r));
  });
}

void cpu_train_attention::normalize_heads_back(const layer_rows& at) {
  if (!config_.joint_qk_norm) return;
  rows_.normalize_heads_back(at.weights.q_norm, config_.q_norm_size(0), at.a.q, scratch_.dq, scratch_.normed_q);
  rows_.normalize_heads_back(at.weights.k_norm, config_.k_norm_size(0), at.a.k, scratch_.dk, scratch_.normed_k);
}

void cpu_train_attention::share_keys(const layer_rows& at) {
  if (!config_.is_shared(at.layer)) return;
  const shared_rows& to = shared_[to_size(config_.rope_of(at.layer))];
  rows_.copy(at.a.k, to.k);
  rows_.copy(at.a.v, to.v);
}

/// A layer that shares leaves its gradients to the one whose keys and values it reads.
void cpu_train_attention::add_shared_gradients(const layer_rows& at) {
  const bool shares = config_.shares_keys(at.layer);
  if (!shares && !config_.is_shared(at.layer)) return;
  const shared_rows& shared = shared_[to_size(config_.rope_of(at.layer))];
  for (const auto& [own, all] : {std::pair{&scratch_.dk, &shared.dk}, std::pair{&scratch_.dv, &shared.dv}})
    rows_.for_each([&, from = shares ? own : all, to = shares ? all : own](std::int64_t r) {
      rows_.kernels().add(from->row(r), from->stride(), to->row(r));
    });
}

/// Layers with wider heads may have left something behind those of this one.
void cpu_train_attention::end_heads(float_rows heads, std::int64_t width) const {
  if (config_.has_two_kinds_of_heads()) rows_.for_each([&](std::int64_t r) { end_row(heads.row(r), width); });
}

/// The gates lie behind all queries of a row.
void cpu_train_attention::open_gates(const layer_rows& at) const {
  if (!config_.attention_gate) return;
  const std::int64_t queries = config_.heads * config_.head_dim;
  rows_.for_each(
      [&](std::int64_t r) { rows_.kernels().open_gate(at.a.q.row(r) + queries, queries, at.a.mixed.row(r)); });
}

void cpu_train_attention::gates_back(const layer_rows& at, float_rows gradient) const {
  if (!config_.attention_gate) return;
  const std::int64_t queries = config_.heads * config_.head_dim;
  rows_.for_each([&](std::int64_t r) {
    rows_.train_kernels().open_gate_back(at.a.q.row(r) + queries, at.a.mixed.row(r), queries, gradient.row(r),
                                         scratch_.dq.row(r) + queries);
  });
}

}  // namespace troupe
