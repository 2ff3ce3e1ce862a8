#include "model/arch/cuda/cuda_attention.hpp"

#include <algorithm>

#include "base/blocks.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

/// Of a layer whose memory is not there yet.
cuda::kv_layer cache_form(const model_config& config, const decoder::options& chosen, const output_cuts& cuts) {
  return {chosen.kv, nullptr, static_cast<int>(cuts.heads.count()), static_cast<int>(config.head_dim)};
}

}  // namespace

std::int64_t cuda_attention::scratch_floats(const model_config& config, const decoder::options& chosen) {
  const output_cuts cuts(chosen.split, config);
  return cuda::attention_scratch_floats(cache_form(config, chosen, cuts), static_cast<int>(chosen.context));
}

cuda_attention::cuda_attention(cuda_products& products, const decoder::options& chosen)
    : products_(products),
      config_(products.config()),
      options_(chosen),
      angles_(config_, chosen.context, chosen.rope_context, products.stream()),
      heads_width_(config_.heads * config_.head_dim),
      kv_width_(config_.kv_heads * config_.head_dim),
      q_(products.take_rows(heads_width_)),
      k_(products.take_rows(kv_width_)),
      v_(products.take_rows(kv_width_)),
      mixed_(products.take_rows(heads_width_)),
      kv_(to_size(cache_of(0).block_bytes() * chosen.blocks * chosen.layers)) {}

void cuda_attention::run(const cuda_layer_pass& at) {
  const layer_weights& weights = at.weights;
  const cuda_products::linear_product qkv[] = {{linear_kind::q, weights.q, queries()},
                                               {linear_kind::k, weights.k, keys()},
                                               {linear_kind::v, weights.v, values()}};
  products_.normalize_for(at, weights.attention_norm, qkv);
  products_.multiply(at, products_.read_rows(), config_.hidden, qkv);
  if (config_.joint_qk_norm) {
    normalize_heads(at, weights.q_norm, queries(), products_.cuts().q);
    normalize_heads(at, weights.k_norm, keys(), products_.cuts().kv);
  }
  place_heads(at);
  attend(at);
  const cuda_products::linear_product o[] = {products_.output_product(linear_kind::o, weights.o)};
  products_.gather(mixed(), at.shape.rows, products_.cuts().q);
  cuda::encode(products_.stream(), mixed(), at.shape.rows, heads_width_, products_.codes_for(o));
  products_.multiply(at, mixed(), heads_width_, o);
  products_.finish_output(at, weights.attention_output_norm);
}

void cuda_attention::place_heads(const cuda_layer_pass& at) {
  const output_cuts& cuts = products_.cuts();
  const bool norms = config_.norms_each_head();
  cuda::place_heads(products_.stream(), {.rows = at.shape.rows,
                                         .places = at.places(),
                                         .cache = cache_of(at.own),
                                         .heads = static_cast<int>(cuts.heads.count()) * group(at),
                                         .q = columns_of(queries(), cuts.q.first),
                                         .k = columns_of(keys(), cuts.kv.first),
                                         .v = columns_of(values(), cuts.kv.first),
                                         .q_norm = norms ? at.weights.q_norm.weight : nullptr,
                                         .k_norm = norms ? at.weights.k_norm.weight : nullptr,
                                         .norm_eps = config_.norm_eps,
                                         .angles = angles_.of(config_.rope_of(at.layer))});
}

/// All heads of a row at once, which all ranks need whole for that.
void cuda_attention::normalize_heads(const cuda_layer_pass& at, const norm_weights& norm, float_rows heads,
                                     const column_cut& cut) {
  products_.gather(heads, at.shape.rows, cut);
  cuda::rms_norm(products_.stream(), {.rows = at.shape.rows,
                                      .n = cut.ends.back(),
                                      .x = heads,
                                      .weight = norm.weight,
                                      .eps = config_.norm_eps,
                                      .out = heads});
}

void cuda_attention::attend(const cuda_layer_pass& at) {
  const pass_shape& shape = at.shape;
  const output_cuts& cuts = products_.cuts();
  const bool has_single_rows = shape.rows == shape.sequences;
  const std::span<float> scratch = products_.scratch();
  cuda::attend(products_.stream(),
               {.cache = cache_of(at.own),
                .places = at.places(),
                .heads = static_cast<int>(cuts.heads.count()) * group(at),
                .tiles = at.tables.attention_tiles(shape),
                .tile_count = shape.attention_tiles,
                .window = config_.window_of(at.layer),
                .positions = shape.blocks * static_cast<int>(block_tokens),
                .q = columns_of(queries(), cuts.q.first),
                .out = columns_of(mixed(), cuts.q.first),
                .scratch = scratch.data(),
                .scratch_floats = static_cast<std::int64_t>(scratch.size()),
                .wide_tile_count = shape.wide_attention_tiles,
                .most_queries = has_single_rows ? std::min(group(at), cuda::tile_queries) : cuda::tile_queries,
                .divisor = config_.score_divisor(),
                .cap = config_.score_cap});
}

void cuda_attention::copy_block(std::int64_t from, std::int64_t to) const {
  for (std::int64_t own = 0; own < options_.layers; ++own) {
    const cuda::kv_layer cache = cache_of(own);
    cuda::copy(cache.data + to * cache.block_bytes(), cache.data + from * cache.block_bytes(),
               to_size(cache.block_bytes()), products_.stream());
  }
}

cuda::kv_layer cuda_attention::cache_of(std::int64_t own) const {
  cuda::kv_layer cache = cache_form(config_, options_, products_.cuts());
  cache.data = kv_.data() + own * options_.blocks * cache.block_bytes();
  return cache;
}

}  // namespace troupe
