// What the rows of a pass read of each other: attention, states, and short convolutions.
#include <algorithm>
#include <array>

#include "model/arch/delta_steps.hpp"
#include "model/train/passes/cpu_train_pass.hpp"

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
  args.weights = weights.convolution + task.first;
  args.weight_stride = padded_row(config.hidden);
  args.kernel = static_cast<int>(config.convolved_rows);
  args.channels = task.columns;
  args.b = branches.row(task.row) + task.first;
  args.c = args.b + config.hidden;
  args.x = args.b + 2 * config.hidden;
  args.row_stride = branches.stride;
  args.rows = static_cast<int>(task.rows);
  return args;
}

}  // namespace

void cpu_train_pass::mix(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in,
                         float_rows out) {
  switch (model_.config.mixer_of(static_cast<std::int64_t>(layer))) {
    case mixer_kind::attention:
      return model_.config.is_latent() ? attend_latent(batch, layer, a, in, out) : attend(batch, layer, a, in, out);
    case mixer_kind::delta:
      return run_delta(batch, layer, a, in, out);
    case mixer_kind::convolution:
      return run_convolution(batch, layer, a, in, out);
  }
}

void cpu_train_pass::mix_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                              std::pair<float_rows, into> to) {
  switch (model_.config.mixer_of(static_cast<std::int64_t>(layer))) {
    case mixer_kind::attention:
      return model_.config.is_latent() ? latent_back(batch, layer, a, given, to)
                                       : attend_back(batch, layer, a, given, to);
    case mixer_kind::delta:
      return delta_back(batch, layer, a, given, to);
    case mixer_kind::convolution:
      return convolution_back(batch, layer, a, given, to);
  }
}

void cpu_train_pass::read_back(std::size_t layer, const activations& a, std::initializer_list<linear_gradient> given,
                               std::pair<float_rows, into> to) {
  const trained_layer& weights = model_.layers[layer];
  normalize(weights.attention_norm, hidden_rows(inputs_[layer]), rows_, hidden_rows(normed_));
  apply_back(weights, hidden_rows(normed_), a, given, to);
}

attention_pass::input cpu_train_pass::attention_input(const training_rows& batch, std::size_t layer,
                                                      const activations& a) const {
  const auto at = static_cast<std::int64_t>(layer);
  const model_config& config = model_.config;
  const shared_rows* shared = config.shares_keys(at) ? &shared_[to_size(config.rope_of(at))] : nullptr;
  const bool norms_keys = config.joint_qk_norm || config.is_latent();
  const buffer &k = shared ? shared->k : norms_keys ? normed_k_ : a.k, &v = shared ? shared->v : a.v;
  return {.batch = batch,
          .layer = model_.layers[layer],
          .k_norm = model_.layers[to_size(config.keys_of(at))].k_norm,
          .window = config.window_of(at),
          .rope = config.rope_of(at),
          .q = query_rows(config.joint_qk_norm ? normed_q_ : a.q),
          .k = kv_rows(k),
          .v = kv_rows(config.has_values(config.keys_of(at)) ? v : k)};
}

attention_pass& cpu_train_pass::attention_of(std::size_t layer) {
  return model_.config.is_wide(static_cast<std::int64_t>(layer)) ? *wide_attention_ : attention_;
}

void cpu_train_pass::share_keys(std::size_t layer, const activations& a) {
  const auto at = static_cast<std::int64_t>(layer);
  if (!model_.config.is_shared(at)) return;
  shared_rows& to = shared_[to_size(model_.config.rope_of(at))];
  std::copy_n(a.k.data(), rows_ * strides_.kv, to.k.data());
  std::copy_n(a.v.data(), rows_ * strides_.kv, to.v.data());
}

/// A layer that shares leaves the gradients of dk_ and dv_ to the one whose keys and values it reads.
void cpu_train_pass::add_shared_gradients(std::size_t layer) {
  const auto at = static_cast<std::int64_t>(layer);
  const bool shares = model_.config.shares_keys(at);
  if (!shares && !model_.config.is_shared(at)) return;
  shared_rows& shared = shared_[to_size(model_.config.rope_of(at))];
  for (const auto& [own, all] : {std::pair{&dk_, &shared.dk}, std::pair{&dv_, &shared.dv}})
    for_rows(rows_, [&, from = shares ? own : all, to = shares ? all : own](std::int64_t r, int) {
      with_.kernels.add(kv_rows(*from).row(r), strides_.kv, kv_rows(*to).row(r));
    });
}

delta_pass::input cpu_train_pass::delta_input(const training_rows& batch, const trained_layer& weights,
                                              const activations& a) const {
  return {.batch = batch,
          .weights = weights.delta,
          .qkv = channel_rows(a.qkv),
          .z = value_rows(a.z),
          .b = share_rows(a.delta_b),
          .a = share_rows(a.delta_a)};
}

void cpu_train_pass::attend(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in,
                            float_rows out) {
  const trained_layer& weights = model_.layers[layer];
  apply(weights, hidden_rows(normed_), a, into::set,
        {{linear_kind::q, query_rows(a.q)}, {linear_kind::k, kv_rows(a.k)}, {linear_kind::v, kv_rows(a.v)}});
  normalize_heads(weights, a);
  share_keys(layer, a);
  attention_of(layer).forward(with_, attention_input(batch, layer, a), query_rows(a.mixed));
  end_heads(query_rows(a.mixed), weights.o.w.ins);
  open_gates(a);
  add_output(weights, linear_kind::o, query_rows(a.mixed), a, in, out);
}

void cpu_train_pass::attend_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                                 std::pair<float_rows, into> to) {
  const trained_layer& weights = model_.layers[layer];
  const float_rows mixed = query_rows(inner_), dq = query_rows(dq_), dk = kv_rows(dk_), dv = kv_rows(dv_);
  apply_back(weights, query_rows(a.mixed), a, {{linear_kind::o, given}}, {mixed, into::set});
  gates_back(a, mixed);
  normalize_heads(weights, a);
  attention_of(layer).backward(with_, attention_input(batch, layer, a), {mixed, dq, dk, dv});
  add_shared_gradients(layer);
  if (!model_.config.has_values(static_cast<std::int64_t>(layer)))
    for_rows(rows_, [&](std::int64_t r, int) { with_.kernels.add(dv.row(r), strides_.kv, dk.row(r)); });
  normalize_heads_back(weights, a);
  for (const auto& [kind, rows] :
       {std::pair{linear_kind::q, dq}, std::pair{linear_kind::k, dk}, std::pair{linear_kind::v, dv}})
    end_heads(rows, weights[kind].w.outs);
  read_back(layer, a, {{linear_kind::q, dq}, {linear_kind::k, dk}, {linear_kind::v, dv}}, to);
}

/// Layers with wider heads may have left something behind those of this one.
void cpu_train_pass::end_heads(float_rows rows, std::int64_t width) {
  if (!model_.config.has_two_kinds_of_heads()) return;
  for_rows(rows_, [&](std::int64_t r, int) { end_row(rows.row(r), width); });
}

/// The gates lie behind all queries of a row.
void cpu_train_pass::open_gates(const activations& a) {
  if (!model_.config.attention_gate) return;
  const std::int64_t queries = model_.config.heads * model_.config.head_dim;
  for_rows(rows_, [&](std::int64_t r, int) {
    with_.kernels.open_gate(query_rows(a.q).row(r) + queries, queries, query_rows(a.mixed).row(r));
  });
}

void cpu_train_pass::gates_back(const activations& a, float_rows gradient) {
  if (!model_.config.attention_gate) return;
  const std::int64_t queries = model_.config.heads * model_.config.head_dim;
  for_rows(rows_, [&](std::int64_t r, int) {
    kernels_.open_gate_back(query_rows(a.q).row(r) + queries, query_rows(a.mixed).row(r), queries, gradient.row(r),
                            query_rows(dq_).row(r) + queries);
  });
}

void cpu_train_pass::run_delta(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in,
                               float_rows out) {
  const trained_layer& weights = model_.layers[layer];
  apply(weights, hidden_rows(normed_), a, into::set,
        {{linear_kind::delta_qkv, channel_rows(a.qkv)},
         {linear_kind::delta_z, value_rows(a.z)},
         {linear_kind::delta_b, share_rows(a.delta_b)},
         {linear_kind::delta_a, share_rows(a.delta_a)}});
  delta_->forward(with_, delta_input(batch, weights, a), value_rows(a.answered));
  add_output(weights, linear_kind::delta_out, delta_answers(weights, a), a, in, out);
}

/// What the last linear layer reads: of a state space all heads' answers, normalized.
float_rows cpu_train_pass::delta_answers(const trained_layer& weights, const activations& a) {
  if (!model_.config.delta.is_state_space) return value_rows(a.answered);
  const float_rows normed = value_rows(normed_values_);
  for_rows(rows_, [&](std::int64_t r, int) {
    normalize_groups(with_.kernels, model_.config.delta, weights.delta.norm, value_rows(a.answered).row(r),
                     normed.row(r));
  });
  return normed;
}

/// From the gradient of what the last linear layer reads to that of the heads' answers.
float_rows cpu_train_pass::delta_answers_back(const trained_layer& weights, const activations& a, float_rows given) {
  const delta_config& config = model_.config.delta;
  if (!config.is_state_space) return given;
  const float_rows answered = value_rows(normed_values_);
  const std::int64_t size = config.norm_size();
  for_rows(rows_, [&](std::int64_t r, int) {
    std::fill_n(answered.row(r), config.values(), 0.0f);
    for (std::int64_t i = 0; i < config.values(); i += size)
      kernels_.rms_norm_back(value_rows(a.answered).row(r) + i, weights.delta.norm + i, given.row(r) + i, size,
                             config.norm_eps, answered.row(r) + i, nullptr);
  });
  return answered;
}

void cpu_train_pass::delta_back(const training_rows& batch, std::size_t layer, activations& a, const_float_rows given,
                                std::pair<float_rows, into> to) {
  const trained_layer& weights = model_.layers[layer];
  const float_rows read = value_rows(inner_), dqkv = channel_rows(dqkv_), dz = value_rows(dz_);
  const float_rows db = share_rows(db_), da = share_rows(da_);
  using enum linear_kind;
  apply_back(weights, delta_answers(weights, a), a, {{delta_out, given}}, {read, into::set});
  const float_rows answered = delta_answers_back(weights, a, read);
  delta_->backward(with_, delta_input(batch, weights, a), {answered, dqkv, dz, db, da});
  read_back(layer, a, {{delta_qkv, dqkv}, {delta_z, dz}, {delta_b, db}, {delta_a, da}}, to);
}

template <class Work>
void cpu_train_pass::for_columns(const training_rows& batch, Work work) {
  const std::int64_t columns = model_.config.hidden, parts = ceil_div(columns, columns_together);
  with_.pool.run(static_cast<int>(static_cast<std::int64_t>(batch.segments.size()) * parts), [&](int i, int) {
    const auto& segment = batch.segments[to_size(i / parts)];
    const std::int64_t first = i % parts * columns_together;
    work(column_task{segment.first, segment.rows, first, std::min(columns_together, columns - first)});
  });
}

void cpu_train_pass::run_convolution(const training_rows& batch, std::size_t layer, activations& a, const_float_rows in,
                                     float_rows out) {
  const trained_layer& weights = model_.layers[layer];
  const float_rows branches = branch_rows(a.branches), convolved = hidden_rows(a.convolved);
  apply(weights, hidden_rows(normed_), a, into::set, {{linear_kind::convolution_in, branches}});
  for_columns(batch, [&](const column_task& task) {
    std::array<float, to_size(longest_convolution * columns_together)> before = {};
    auto args = convolution_of<short_convolution_args>(task, weights, model_.config, branches);
    args.out = convolved.row(task.row) + task.first;
    args.out_stride = convolved.stride;
    args.before = before.data();
    args.before_stride = task.columns;
    with_.kernels.short_convolve(args);
  });
  add_output(weights, linear_kind::convolution_out, convolved, a, in, out);
}

void cpu_train_pass::convolution_back(const training_rows& batch, std::size_t layer, activations& a,
                                      const_float_rows given, std::pair<float_rows, into> to) {
  const trained_layer& weights = model_.layers[layer];
  const float_rows branches = branch_rows(a.branches), dbranches = branch_rows(dbranches_);
  const float_rows convolved = hidden_rows(inner_);
  apply_back(weights, hidden_rows(a.convolved), a, {{linear_kind::convolution_out, given}}, {convolved, into::set});
  for_columns(batch, [&](const column_task& task) {
    const std::int64_t hidden = model_.config.hidden;
    auto args = convolution_of<short_convolution_back_args>(task, weights, model_.config, branches);
    args.out_gradient = convolved.row(task.row) + task.first;
    args.out_stride = convolved.stride;
    args.b_gradient = dbranches.row(task.row) + task.first;
    args.c_gradient = args.b_gradient + hidden;
    args.x_gradient = args.b_gradient + 2 * hidden;
    args.gradient_stride = dbranches.stride;
    kernels_.short_convolve_back(args);
  });
  read_back(layer, a, {{linear_kind::convolution_in, dbranches}}, to);
}

}  // namespace troupe
