#include "model/train/cuda/cuda_train_pass.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/arch/device.hpp"
#include "model/train/passes/gpu_pass.hpp"

namespace troupe {
namespace {

/// Throws input_error where the GPU's ops do not do what is asked for.
const train_pass::options& checked(const train_pass::options& options, const trained_model& model) {
  const std::string where = name_of(options.device);
  check_device(options.device, where);
  if (!model.base) refuse("{}: adapters alone are trained on GPUs: train all weights on the device cpu", where);
  check_sizes_for_gpu(model.config, where);
  cuda::use_device(options.device.gpu);
  return options;
}

std::int64_t rows_of_logits(const trained_model& model, std::int64_t most_rows) {
  constexpr std::int64_t most_logits = 128 << 20;
  return std::min(most_rows, std::clamp<std::int64_t>(most_logits / model.config.vocab_size / 128 * 128, 128, 1024));
}

}  // namespace

std::unique_ptr<train_pass> make_cuda_train_pass(const trained_model& model, const parameter_set& parameters,
                                                 const compute& with, train_pass::options chosen) {
  const std::int64_t rows = chosen.most_rows, positions = chosen.most_positions;
  const std::string where = name_of(chosen.device);
  try {
    return std::make_unique<cuda_train_pass>(model, parameters, with, std::move(chosen));
  } catch (const std::bad_alloc&) {
    throw full_error(fmt::format(
        "{}: the model and a pass of {} rows of {} tokens do not fit into its memory: lower --length or --batch, or "
        "use --low-memory",
        where, rows / positions, positions));
  }
}

cuda_train_pass::cuda_train_pass(const trained_model& model, const parameter_set& parameters, const compute& with,
                                 options chosen)
    : model_(model),
      with_(with),
      options_(checked(chosen, model)),
      weights_(*model.base, 0, model.config.layers, stream_),
      parameters_(parameters),
      gradients_before_(ends_of_gradients(parameters.gradients())),
      rows_(options_.most_rows),
      attention_(model.config, options_.most_rows, options_.most_positions,
                 options_.precision == train_precision::as_served, stream_),
      heads_width_(model.config.heads * model.config.head_dim),
      kv_width_(model.config.kv_heads * model.config.head_dim),
      lora_width_(largest_rank(model)),
      loss_rows_(rows_of_logits(model, options_.most_rows)),
      losses_(to_size(options_.most_rows)),
      losses_on_host_(to_size(options_.most_rows)) {
  const model_config& config = model.config;
  for (std::size_t i = 0; i <= model.layers.size(); ++i) inputs_.push_back(take(config.hidden));
  make_activations();
  normed_ = take(config.hidden);
  if (config.output_norms) middle_ = take(config.hidden);
  if (config.joint_qk_norm) {
    normed_q_ = take(heads_width_);
    normed_k_ = take(kv_width_);
  }
  gradient_ = take(config.hidden);
  inner_ = take(std::max(config.hidden, heads_width_));
  active_ = take(config.ffn);
  active_gradient_ = take(config.ffn);
  dq_ = take(heads_width_);
  dk_ = take(kv_width_);
  dv_ = take(kv_width_);
  if (lora_width_ > 0) {
    dropped_ = take(std::max({config.hidden, heads_width_, config.ffn}));
    lora_gradient_ = take(lora_width_);
  }
  final_ = buffer(to_size(loss_rows_ * padded_row(config.hidden)));
  final_gradient_ = buffer(final_.size());
  logits_ = buffer(to_size(loss_rows_ * padded_row(config.vocab_size)));
  if (config.logit_cap != 0) slopes_ = buffer(logits_.size());
  slices_ = buffer(to_size(cuda::product_scratch_floats));
  take_library();
  stream_.wait();
}

/// Kernels that still run read memory that is about to be freed, maybe by a thread that has used no device yet.
cuda_train_pass::~cuda_train_pass() {
  try {
    cuda::use_device(options_.device.gpu);
    stream_.wait();
    parameters_.wait();
  } catch (const std::exception&) {  // an error of a pass that nobody waits for any more
  }
}

cuda_train_pass::buffer cuda_train_pass::take(std::int64_t columns) const {
  return buffer(to_size(options_.most_rows * padded_row(columns)));
}

void cuda_train_pass::make_activations() {
  const model_config& config = model_.config;
  activations_.resize(options_.keep_activations ? model_.layers.size() : 1);
  for (activations& a : activations_) {
    a.q = take(heads_width_);
    a.k = take(kv_width_);
    a.v = take(kv_width_);
    a.mixed = take(heads_width_);
    if (config.output_norms)
      a.attended = take(config.hidden), a.fed = take(config.hidden);
    else
      a.middle = take(config.hidden);
    a.up = take(config.ffn);
    if (config.gated_mlp) a.gate = take(config.ffn);
    for (buffer& between : a.lora) between = take(lora_width_);
  }
}

device_linear cuda_train_pass::linear_of(std::size_t layer, linear_kind kind) const {
  const linear_weights& weights = weights_.layers[layer][kind];
  const lora_factors& lora = model_.layers[layer][kind].lora;
  if (lora.rank == 0) return {.w = weights.w, .bias = weights.bias};
  return {.w = weights.w,
          .bias = weights.bias,
          .rank = lora.rank,
          .scale = lora.scale,
          .stream = lora.stream,
          .a = {parameters_.value(lora.a), lora.a_stride},
          .b = {parameters_.value(lora.b), lora.stride},
          .a_gradient = {parameters_.gradient(lora.a_gradient), lora.a_stride},
          .b_gradient = {parameters_.gradient(lora.b_gradient), lora.stride},
          .between = rows_of(activations_of(layer).lora[to_size(kind)], lora_width_)};
}

device_attention::input cuda_train_pass::attention_input(std::size_t layer) const {
  const layer_weights& weights = weights_.layers[layer];
  const activations& a = activations_of(layer);
  const auto index = static_cast<std::int64_t>(layer);
  const bool joint = model_.config.joint_qk_norm;
  return {.rows = rows_,
          .window = model_.config.window_of(index),
          .rope = model_.config.rope_of(index),
          .q_norm = joint ? nullptr : weights.q_norm.weight,
          .k_norm = joint ? nullptr : weights.k_norm.weight,
          .q = rows_of(joint ? normed_q_ : a.q, heads_width_),
          .k = rows_of(joint ? normed_k_ : a.k, kv_width_),
          .v = rows_of(a.v, kv_width_)};
}

// --- a pass ---

pass_result cuda_train_pass::train(const training_rows& batch, float factor, const dropout_key& dropout) {
  begin(batch, dropout);
  parameters_.clear_gradients(stream_);
  cuda::clear(gradient_.data(), gradient_.size() * sizeof(float), stream_);
  forward();
  loss(factor, true);
  for (std::size_t layer = model_.layers.size(); layer-- > 0;) {
    if (!options_.keep_activations) forward_layer(layer, nullptr);
    backward_layer(layer);
    parameters_.fetch_gradients(gradients_before_[layer], stream_);
    pace();
  }
  parameters_.set_gradients_of_host(with_);
  return result();
}

/// Of each layer, where the gradients of all layers before it have ended, and where all end: what lies behind is made
/// once backward has gone through the layer.
std::vector<const float*> cuda_train_pass::ends_of_gradients(std::span<const float> all) const {
  std::vector<const float*> ends{all.data()};
  for (const trained_layer& layer : model_.layers) {
    const float* end = ends.back();
    for (const linear_kind kind : every_linear) {
      const trained_linear& linear = layer[kind];
      const lora_factors& lora = linear.lora;
      if (lora.rank > 0)
        end = std::max<const float*>(
            {end, lora.a_gradient + lora.rank * lora.a_stride, lora.b_gradient + linear.w.outs * lora.stride});
    }
    ends.push_back(end);
  }
  ends.back() = all.data() + all.size();
  return ends;
}

pass_result cuda_train_pass::measure(const training_rows& batch) {
  begin(batch, {});
  forward();
  loss(0, false);
  return result();
}

/// Waits first: a pass that was given up may still run.
void cuda_train_pass::begin(const training_rows& batch, const dropout_key& dropout) {
  check_rows(batch, options_, model_.config);
  cuda::use_device(options_.device.gpu);
  stream_.wait();
  parameters_.wait();
  rows_.fill(batch, stream_);
  parameters_.begin_pass();
  dropout_ = dropout;
}

/// Waits for all of the pass.
pass_result cuda_train_pass::result() {
  const auto count = to_size(rows_.target_count());
  cuda::copy(losses_on_host_.data(), losses_.data(), count, stream_);
  stream_.wait();
  pass_result total;
  for (std::size_t i = 0; i < count; ++i) total.add_row(losses_on_host_[i]);
  return total;
}

/// Keeps the host only a little ahead of the device: near enough that a pause in `between` soon pauses the device, and
/// far enough that the device never waits for work.
void cuda_train_pass::pace() {
  if (!options_.between) return;
  const cuda::event& before_last = paced_[next_paced_];
  next_paced_ = 1 - next_paced_;
  before_last.wait();
  before_last.record(stream_);
  options_.between();
}

void cuda_train_pass::forward() {
  cuda::embed(stream_, {.table = weights_.embeddings,
                        .factor = model_.config.embedding_factor,
                        .rows = rows_.count(),
                        .tokens = rows_.tokens(),
                        .learned = weights_.positions,
                        .learned_stride = model_.position_stride,
                        .positions = rows_.positions(),
                        .out = hidden_rows(inputs_[0])});
  for (std::size_t layer = 0; layer < model_.layers.size(); ++layer) {
    parameters_.send_values(with_, gradients_before_[layer + 1], stream_);
    forward_layer(layer, &inputs_[layer + 1]);
    pace();
  }
}

void cuda_train_pass::forward_layer(std::size_t layer, const buffer* out) {
  using enum linear_kind;
  const activations& a = activations_of(layer);
  const layer_weights& weights = weights_.layers[layer];
  const buffer& in = inputs_[layer];
  const float_rows mixed = rows_of(a.mixed, heads_width_);
  normalize_to_read(weights.attention_norm, in);
  apply(layer, hidden_rows(normed_), into::set,
        {{q, rows_of(a.q, heads_width_)}, {k, rows_of(a.k, kv_width_)}, {v, rows_of(a.v, kv_width_)}});
  normalize_heads(weights, a);
  attention_.forward(stream_, attention_input(layer), mixed);
  read(mixed, heads_width_);
  add_output(layer, o, mixed, in, &middle_of(a));
  normalize_to_read(weights.mlp_norm, middle_of(a));
  gate_and_up(layer);
  activate_to_read(a);
  add_output(layer, down, rows_of(active_, model_.config.ffn), middle_of(a), out);
}

void cuda_train_pass::add_output(std::size_t layer, linear_kind kind, float_rows x, const buffer& before,
                                 const buffer* sum) {
  const device_linear l = linear_of(layer, kind);
  if (!model_.config.output_norms) return apply_to_sum(l, x, before, sum);
  const activations& a = activations_of(layer);
  const layer_weights& weights = weights_.layers[layer];
  const bool feeds = is_mlp(kind);
  const buffer& made = feeds ? a.fed : a.attended;
  apply(l, x, hidden_rows(made), into::set);
  if (sum) add_normalized(feeds ? weights.mlp_output_norm : weights.attention_output_norm, before, made, *sum);
}

void cuda_train_pass::backward_layer(std::size_t layer) {
  using enum linear_kind;
  const activations& a = activations_of(layer);
  const layer_weights& weights = weights_.layers[layer];
  const float_rows mixed = rows_of(a.mixed, heads_width_), mixed_gradient = rows_of(inner_, heads_width_);
  const float_rows dq = rows_of(dq_, heads_width_), dk = rows_of(dk_, kv_width_), dv = rows_of(dv_, kv_width_);
  // Nothing is trained below the first layer.
  const gradient_target to = layer == 0 ? gradient_target{} : input_gradient();
  if (model_.config.output_norms) add_normalized(weights.attention_output_norm, inputs_[layer], a.attended, middle_);
  activate_to_read(a);
  down_back(layer);
  normalize_to_read(weights.mlp_norm, middle_of(a));
  gate_and_up_back(layer);
  if (model_.config.input_norms) normalize_back(weights.mlp_norm, middle_of(a), inner_, gradient_);
  read(mixed, heads_width_);
  apply_back(layer, mixed, {{o, output_gradient(weights.attention_output_norm, a.attended)}}, {mixed_gradient});
  normalize_heads(weights, a);
  attention_.backward(stream_, attention_input(layer), mixed_gradient, dq, dk, dv);
  normalize_heads_back(weights, a);
  normalize_to_read(weights.attention_norm, inputs_[layer]);
  apply_back(layer, hidden_rows(normed_), {{q, dq}, {k, dk}, {v, dv}}, to);
  if (to.rows.data && model_.config.input_norms)
    normalize_back(weights.attention_norm, inputs_[layer], inner_, gradient_);
}

}  // namespace troupe
