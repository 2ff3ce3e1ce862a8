#include "model/arch/cuda/cuda_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/arch/cuda/device_row_steps.hpp"
#include "model/arch/device.hpp"

namespace troupe {
namespace {

constexpr int most_picked_rows = 256;  // logits of more are made part by part: a vocabulary is wide

/// From this column on.
float_rows columns_of(float_rows rows, std::int64_t first) {
  return {rows.data ? rows.data + first : nullptr, rows.stride};
}

/// Throws input_error where the GPU's ops do not do what is asked for.
const decoder::options& checked(const decoder::options& options, const loaded_model& model) {
  const std::string where = name_of(options.device);
  check_device(options.device, where);
  check_sizes_for_gpu(model.config, where);
  cuda::use_device(options.device.gpu);
  return options;
}

}  // namespace

cuda_decoder::cuda_decoder(std::shared_ptr<const loaded_model> model, const options& chosen)
    : decoder(model, checked(chosen, *model)),
      cuts_(options_.split, model_->config),
      weights_(*model_, options_.first_layer, options_.layers, stream_, options_.split),
      adapters_(options_.first_layer, options_.layers, cuts_),
      tables_(options_.max_rows, options_.max_sequences, options_.context,
              static_cast<int>(model_->config.heads_per_kv(options_.first_layer))),
      angles_(model_->config, options_.context, options_.rope_context, stream_),
      heads_width_(model_->config.heads * model_->config.head_dim),
      kv_width_(model_->config.kv_heads * model_->config.head_dim),
      picked_rows_(std::min(options_.max_rows, most_picked_rows)),
      gather_(options_.split, most_gathered_floats()),
      codes_(options_.max_rows, std::max({model_->config.hidden, heads_width_, model_->config.ffn})),
      picked_(to_size(options_.max_rows)),
      largest_(picked_.size()),
      picked_on_device_(picked_.size()),
      largest_on_device_(picked_.size()) {
  const model_config& config = model_->config;
  const auto take = [&](std::int64_t columns) {
    const auto size = to_size(options_.max_rows * padded_row(columns));
    cuda::device_buffer<float> rows(size);
    cuda::clear(rows.data(), size * sizeof(float), stream_);  // the padding of rows is copied to the host, too
    return rows;
  };
  hidden_ = take(config.hidden);
  normed_ = take(config.hidden);
  q_ = take(heads_width_);
  mixed_ = take(heads_width_);
  k_ = take(kv_width_);
  v_ = take(kv_width_);
  if (config.experts.count > 0) {
    experts_ = device_experts(config, weights_.layers, device_experts::rows_together(config, options_.max_rows));
  } else {
    up_ = take(config.ffn);
    if (config.gated_mlp) gate_ = take(config.ffn);
  }
  between_ = cuda::device_buffer<float>(to_size(cuda::lora_between_floats(options_.max_rows, most_adapter_rank)));
  if (is_last()) logits_ = cuda::device_buffer<float>(to_size(picked_rows_ * logit_stride()));
  kv_ = cuda::device_buffer<std::byte>(to_size(cache_of(0).block_bytes() * options_.blocks * options_.layers));
  scratch_ = cuda::device_buffer<float>(
      to_size(std::max({cuda::attention_scratch_floats(cache_of(0), static_cast<int>(options_.context)),
                        cuda::matmul_scratch_floats(), cuda::argmax_scratch_floats(picked_rows_)})));
  take_library();
  stream_.wait();
}

/// For passes of very many rows, if there can be any with weights that it multiplies. On Hopper our own kernels do
/// that.
void cuda_decoder::take_library() {
  const auto has_u8 = [](const layer_weights& layer) {
    return std::any_of(every_linear.begin(), every_linear.end(),
                       [&](linear_kind kind) { return layer[kind].w.kind == scheme::u8; });
  };
  if (options_.max_rows < cuda::least_library_rows || cuda::is_hopper()) return;
  if (std::none_of(weights_.layers.begin(), weights_.layers.end(), has_u8)) return;
  auto loaded = cuda::load_integer_library(stream_);
  remark_ = fmt::format("{}: passes of {} rows and more multiply u8 weights with {}", name_of(options_.device),
                        cuda::least_library_rows,
                        loaded.library ? loaded.about : fmt::format("the kernels of smaller ones: {}", loaded.about));
  if (loaded.library) library_ = std::make_unique<cuda::library_products>(std::move(loaded.library));
}

/// Kernels that still run read memory that is about to be freed, maybe by a thread that has used no device yet.
cuda_decoder::~cuda_decoder() {
  try {
    use();
    stream_.wait();
  } catch (const std::exception&) {  // an error of a pass that nobody waits for any more
  }
}

void cuda_decoder::add_adapter(const lora_adapter& adapter) {
  use();
  const auto* table = adapters_.table();
  const int rank = adapters_.most_rank();
  adapters_.add(adapter, stream_);
  if (table != adapters_.table() || rank != adapters_.most_rank()) recorded_.clear();  // they name the old ones
}

void cuda_decoder::remove_adapter(const lora_adapter& adapter) {
  use();
  adapters_.remove(adapter, stream_);
}

void cuda_decoder::copy_block(std::int64_t from, std::int64_t to) {
  use();
  for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
    const cuda::kv_layer cache = cache_of(layer);
    cuda::copy(cache.data + to * cache.block_bytes(), cache.data + from * cache.block_bytes(),
               to_size(cache.block_bytes()), stream_);
  }
}

// --- a pass ---

void cuda_decoder::embed(const pass&, std::span<const std::int32_t> tokens, float*) {
  tokens_.assign(tokens.begin(), tokens.end());
}

void cuda_decoder::run(const pass& batch, float* hidden) {
  if (batch.rows == 0) return;
  use();
  const pass_shape shape = tables_.fill(batch, tokens_, adapters_);
  tokens_.clear();
  tables_.upload(shape, stream_);
  const auto floats = to_size(batch.rows * hidden_stride());
  if (!is_first()) {
    cuda::copy(hidden_.data(), hidden, floats, stream_);
    stream_.wait();  // the caller may write to `hidden` again
  }
  if (is_decode(batch) && options_.split.is_whole())
    run_decode(shape);
  else
    run_pass(shape);
  if (is_last()) return;
  cuda::copy(hidden, hidden_.data(), floats, stream_);
  stream_.wait();
}

/// A shape's first pass is not recorded: it loads the kernels, which not every driver does while a graph is recorded,
/// and most shapes that come only once are not worth a graph.
void cuda_decoder::run_decode(const pass_shape& shape) {
  const auto [known, is_new] = recorded_.try_emplace(shape);
  if (is_new) return run_pass(shape);
  cuda::graph& whole = known->second;
  if (!whole) whole = cuda::graph::capture(stream_, [&] { run_pass(shape); });
  whole.launch(stream_);
}

void cuda_decoder::run_pass(const pass_shape& shape) {
  if (is_first())
    cuda::embed(stream_, {.table = weights_.embeddings,
                          .factor = model_->config.embedding_factor,
                          .rows = shape.rows,
                          .tokens = tables_.tokens(),
                          .learned = weights_.positions,
                          .learned_stride = hidden_stride(),
                          .positions = tables_.places(shape).positions,
                          .out = rows_of(hidden_, model_->config.hidden)});
  for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
    attend(shape, layer);
    if (model_->config.experts.count > 0)
      mix_experts(shape, layer);
    else
      feed_forward(shape, layer);
  }
}

void cuda_decoder::attend(const pass_shape& shape, std::int64_t layer) {
  const layer_weights& weights = weights_.layers[to_size(layer)];
  const std::int64_t hidden = model_->config.hidden;
  const linear_product qkv[] = {{linear_kind::q, weights.q, rows_of(q_, heads_width_)},
                                {linear_kind::k, weights.k, rows_of(k_, kv_width_)},
                                {linear_kind::v, weights.v, rows_of(v_, kv_width_)}};
  normalize(shape.rows, weights.attention_norm, nullptr, codes_for(qkv), read_floats(shape, qkv));
  multiply(shape, layer, read_rows(), hidden, qkv);
  if (model_->config.joint_qk_norm) {
    normalize_heads(shape, weights.q_norm, rows_of(q_, heads_width_), cuts_.q);
    normalize_heads(shape, weights.k_norm, rows_of(k_, kv_width_), cuts_.kv);
  }
  place_heads(shape, layer);
  attend_heads(shape, layer);
  const linear_product o[] = {output_product(linear_kind::o, weights.o)};
  const float_rows mixed = rows_of(mixed_, heads_width_);
  gather_(stream_, mixed, shape.rows, cuts_.q);
  cuda::encode(stream_, mixed, shape.rows, heads_width_, codes_for(o));
  multiply(shape, layer, mixed, heads_width_, o);
  finish_output(shape, weights.attention_output_norm);
}

void cuda_decoder::feed_forward(const pass_shape& shape, std::int64_t layer) {
  const layer_weights& weights = weights_.layers[to_size(layer)];
  const model_config& config = model_->config;
  const float_rows up = rows_of(up_, config.ffn), gate = rows_of(gate_, config.ffn);
  const linear_product both[] = {{linear_kind::up, weights.up, up}, {linear_kind::gate, weights.gate, gate}};
  const std::span<const linear_product> inner(both, config.gated_mlp ? 2 : 1);
  normalize(shape.rows, weights.mlp_norm, nullptr, codes_for(inner), read_floats(shape, inner));
  const linear_product down[] = {output_product(linear_kind::down, weights.down)};
  cuda::row_codes codes = codes_for(down);
  if (!multiply_gated(shape, inner, read_floats(shape, down), codes)) {
    multiply(shape, layer, read_rows(), config.hidden, inner);
    activate(shape, codes, read_floats(shape, down));
  }
  multiply(shape, layer, up, config.ffn, down, codes);
  finish_output(shape, weights.mlp_output_norm);
}

void cuda_decoder::mix_experts(const pass_shape& shape, std::int64_t layer) {
  const layer_weights& weights = weights_.layers[to_size(layer)];
  const std::int64_t hidden = model_->config.hidden;
  const cuda::row_codes codes = device_experts::codes_for(weights, codes_);
  normalize(shape.rows, weights.mlp_norm, nullptr, codes, true);
  experts_.mix(stream_, weights,
               {.rows = shape.rows,
                .positions = tables_.places(shape).positions,
                .normed = rows_of(normed_, hidden),
                .codes = codes,
                .hidden = rows_of(hidden_, hidden)});
}

/// Gate, up and activation at once, if that is possible. Codes are then made in the place of the gate's rows, since
/// those of the inputs are still read.
bool cuda_decoder::multiply_gated(const pass_shape& shape, std::span<const linear_product> inner, bool floats,
                                  cuda::row_codes& codes) {
  const model_config& config = model_->config;
  if (!config.gated_mlp || shape.lora_tiles > 0 || !options_.split.is_whole()) return false;
  const linear_product &up = inner[0], &gate = inner[1];
  cuda::gated_product both{.gate = {gate.weights.w, {}, gate.weights.bias},
                           .up = {up.weights.w, {}, up.weights.bias},
                           .is_gelu = config.is_geglu(),
                           .out = up.to};
  if (!cuda::can_multiply_gated(both, shape.rows)) return false;
  const bool only_bf16 = codes.bf16 && !codes.q && !floats;
  if (only_bf16) codes.bf16 = both.bf16 = reinterpret_cast<std::uint16_t*>(gate_.data());
  cuda::multiply_gated(stream_, both, {shape.rows, read_rows(), codes_for(inner)});
  if (!only_bf16) cuda::encode(stream_, up.to, shape.rows, config.ffn, codes);
  return true;
}

cuda_decoder::linear_product cuda_decoder::output_product(linear_kind kind, const linear_weights& weights) const {
  const std::int64_t hidden = model_->config.hidden;
  if (model_->config.output_norms) return {kind, weights, rows_of(normed_, hidden)};
  return {kind, weights, rows_of(hidden_, hidden), true};
}

void cuda_decoder::finish_output(const pass_shape& shape, const norm_weights& norm) {
  const std::int64_t hidden = model_->config.hidden;
  const bool normed = model_->config.output_norms;
  gather_(stream_, rows_of(normed ? normed_ : hidden_, hidden), shape.rows, cuts_.hidden);
  if (!normed) return;
  normalize_rows(stream_, model_->config,
                 {.rows = shape.rows,
                  .n = hidden,
                  .x = rows_of(normed_, hidden),
                  .weight = norm.weight,
                  .bias = norm.bias,
                  .eps = model_->config.norm_eps,
                  .out = rows_of(hidden_, hidden),
                  .before = rows_of(hidden_, hidden)});
}

/// Codes are made of whole rows.
void cuda_decoder::activate(const pass_shape& shape, const cuda::row_codes& codes, bool floats) {
  const model_config& config = model_->config;
  const bool whole = options_.split.is_whole();
  const float_rows up = rows_of(up_, config.ffn), own = columns_of(up, cuts_.ffn.first);
  const cuda::activation_args activation{.rows = shape.rows,
                                         .n = std::min(cuts_.ffn.last, config.ffn) - cuts_.ffn.first,
                                         .gate = columns_of(rows_of(gate_, config.ffn), cuts_.ffn.first),
                                         .x = own,
                                         .out = floats || !whole ? own : float_rows{},
                                         .codes = whole ? codes : cuda::row_codes{}};
  activate_rows(stream_, config, activation);
  if (whole) return;
  gather_(stream_, up, shape.rows, cuts_.ffn);
  cuda::encode(stream_, up, shape.rows, config.ffn, codes);
}

void cuda_decoder::place_heads(const pass_shape& shape, std::int64_t layer) {
  const layer_weights& weights = weights_.layers[to_size(layer)];
  const model_config& config = model_->config;
  const std::int64_t group = config.heads_per_kv(options_.first_layer + layer);
  const bool norms = config.norms_each_head();
  cuda::place_heads(stream_, {.rows = shape.rows,
                              .places = tables_.places(shape),
                              .cache = cache_of(layer),
                              .heads = static_cast<int>(cuts_.heads.count() * group),
                              .q = columns_of(rows_of(q_, heads_width_), cuts_.q.first),
                              .k = columns_of(rows_of(k_, kv_width_), cuts_.kv.first),
                              .v = columns_of(rows_of(v_, kv_width_), cuts_.kv.first),
                              .q_norm = norms ? weights.q_norm.weight : nullptr,
                              .k_norm = norms ? weights.k_norm.weight : nullptr,
                              .norm_eps = config.norm_eps,
                              .angles = angles_.of(config.rope_of(options_.first_layer + layer))});
}

/// All heads of a row at once, which all ranks need whole for that.
void cuda_decoder::normalize_heads(const pass_shape& shape, const norm_weights& norm, float_rows heads,
                                   const column_cut& cut) {
  gather_(stream_, heads, shape.rows, cut);
  cuda::rms_norm(stream_, {.rows = shape.rows,
                           .n = cut.ends.back(),
                           .x = heads,
                           .weight = norm.weight,
                           .eps = model_->config.norm_eps,
                           .out = heads});
}

void cuda_decoder::attend_heads(const pass_shape& shape, std::int64_t layer) {
  const model_config& config = model_->config;
  const auto group = static_cast<int>(config.heads_per_kv(options_.first_layer + layer));
  const bool has_single_rows = shape.rows == shape.sequences;
  cuda::attend(stream_, {.cache = cache_of(layer),
                         .places = tables_.places(shape),
                         .heads = static_cast<int>(cuts_.heads.count()) * group,
                         .tiles = tables_.attention_tiles(shape),
                         .tile_count = shape.attention_tiles,
                         .window = config.window_of(options_.first_layer + layer),
                         .positions = shape.blocks * static_cast<int>(block_tokens),
                         .q = columns_of(rows_of(q_, heads_width_), cuts_.q.first),
                         .out = columns_of(rows_of(mixed_, heads_width_), cuts_.q.first),
                         .scratch = scratch_.data(),
                         .scratch_floats = static_cast<std::int64_t>(scratch_.size()),
                         .wide_tile_count = shape.wide_attention_tiles,
                         .most_queries = has_single_rows ? std::min(group, cuda::tile_queries) : cuda::tile_queries,
                         .divisor = config.score_divisor(),
                         .cap = config.score_cap});
}

void cuda_decoder::normalize(int rows, const norm_weights& norm, const std::int32_t* gather,
                             const cuda::row_codes& codes, bool floats) {
  const model_config& config = model_->config;
  if (!norm.weight) return cuda::encode(stream_, rows_of(hidden_, config.hidden), rows, config.hidden, codes);
  normalize_rows(stream_, config,
                 {.rows = rows,
                  .n = config.hidden,
                  .x = rows_of(hidden_, config.hidden),
                  .gather = gather,
                  .weight = norm.weight,
                  .bias = norm.bias,
                  .eps = config.norm_eps,
                  .out = floats ? rows_of(normed_, config.hidden) : float_rows{},
                  .codes = codes});
}

void cuda_decoder::multiply(const pass_shape& shape, std::int64_t layer, float_rows x, std::int64_t ins,
                            std::span<const linear_product> products) {
  multiply(shape, layer, x, ins, products, codes_for(products));
}

void cuda_decoder::multiply(const pass_shape& shape, std::int64_t layer, float_rows x, std::int64_t ins,
                            std::span<const linear_product> products, const cuda::row_codes& codes) {
  std::array<cuda::product, cuda::most_products> jobs;
  for (std::size_t i = 0; i < products.size(); ++i)
    jobs[i] = {products[i].weights.w, made_part(products[i]), products[i].weights.bias, products[i].accumulate};
  cuda::matmul(stream_, std::span(jobs.data(), products.size()),
               {shape.rows, x, codes, scratch_.data(), library_.get()});
  if (shape.lora_tiles > 0) add_adapters(shape, layer, x, ins, products);
}

void cuda_decoder::add_adapters(const pass_shape& shape, std::int64_t layer, float_rows x, std::int64_t ins,
                                std::span<const linear_product> products) {
  cuda::lora_args args{.tiles = tables_.lora_tiles(shape),
                       .tile_count = shape.lora_tiles,
                       .most_tile_rows = shape.lora_tile_rows,
                       .table = adapters_.table(),
                       .table_stride = adapters_.table_stride(),
                       .most_rank = adapters_.most_rank(),
                       .x = x,
                       .ins = ins,
                       .target_count = static_cast<int>(products.size()),
                       .between = between_.data()};
  for (std::size_t i = 0; i < products.size(); ++i)
    args.targets[i] = {device_adapters::linear(layer, products[i].kind), products[i].weights.w.outs,
                       made_part(products[i])};
  cuda::lora(stream_, args);
}

// --- memory ---

/// The part of a product's rows that this rank makes.
float_rows cuda_decoder::made_part(const linear_product& product) const {
  return columns_of(product.to, cuts_.of(product.kind).first_output());
}

std::int64_t cuda_decoder::most_gathered_floats() const {
  const auto most =
      options_.max_rows * std::max({cuts_.q.ends.back(), cuts_.hidden.ends.back(), cuts_.ffn.ends.back()});
  return is_last() ? std::max(most, picked_rows_ * cuts_.vocab.ends.back()) : most;
}

cuda::row_codes cuda_decoder::codes_for(std::span<const linear_product> products) const {
  const auto any = [&](auto is) {
    return std::any_of(products.begin(), products.end(),
                       [&](const linear_product& each) { return is(each.weights.w.kind); });
  };
  return codes_.view(any(is_integer), any([](scheme kind) { return kind == scheme::bf16; }));
}

/// Whether these products, or adapters, read more of their input than its codes.
bool cuda_decoder::read_floats(const pass_shape& shape, std::span<const linear_product> products) const {
  return shape.lora_tiles > 0 || std::any_of(products.begin(), products.end(), [](const linear_product& each) {
           return each.weights.w.kind == scheme::f32;
         });
}

cuda::kv_layer cuda_decoder::cache_of(std::int64_t layer) const {
  const model_config& config = model_->config;
  cuda::kv_layer cache{options_.kv, nullptr, static_cast<int>(cuts_.heads.count()), static_cast<int>(config.head_dim)};
  cache.data = kv_.data() + layer * options_.blocks * cache.block_bytes();
  return cache;
}

}  // namespace troupe
