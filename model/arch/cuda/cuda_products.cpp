#include "model/arch/cuda/cuda_products.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/to_size.hpp"
#include "model/arch/cuda/device_row_steps.hpp"
#include "model/arch/device.hpp"

namespace troupe {
namespace {

/// Of attention and mlps.
std::int64_t widest_input(const model_config& config) {
  return std::max({config.hidden, config.heads * config.head_dim, config.ffn});
}

}  // namespace

cuda_products::cuda_products(const model_config& config, const decoder::options& chosen, const cuda::stream& stream,
                             const room& asked)
    : config_(config),
      options_(chosen),
      stream_(stream),
      cuts_(chosen.split, config),
      adapters_(chosen.first_layer, chosen.layers, cuts_),
      gather_(chosen.split, most_gathered_floats(asked)),
      codes_(chosen.max_rows, widest_input(config)),
      hidden_(take_rows(config.hidden)),
      normed_(take_rows(config.hidden)),
      between_(to_size(cuda::lora_between_floats(chosen.max_rows, most_adapter_rank))),
      scratch_(to_size(std::max(asked.scratch_floats, cuda::matmul_scratch_floats()))) {}

std::string cuda_products::take_library(std::span<const layer_weights> layers) {
  const auto has_u8 = [](const layer_weights& layer) {
    return std::any_of(every_linear.begin(), every_linear.end(),
                       [&](linear_kind kind) { return layer[kind].w.kind == scheme::u8; });
  };
  if (options_.max_rows < cuda::least_library_rows || cuda::is_hopper()) return {};
  if (std::none_of(layers.begin(), layers.end(), has_u8)) return {};
  auto loaded = cuda::load_integer_library(stream_);
  const std::string remark = fmt::format(
      "{}: passes of {} rows and more multiply u8 weights with {}", name_of(options_.device), cuda::least_library_rows,
      loaded.library ? loaded.about : fmt::format("the kernels of smaller ones: {}", loaded.about));
  if (loaded.library) library_ = std::make_unique<cuda::library_products>(std::move(loaded.library));
  return remark;
}

/// The padding of rows is copied to the host, too.
cuda::device_buffer<float> cuda_products::take_rows(std::int64_t columns) const {
  const auto size = to_size(options_.max_rows * padded_row(columns));
  cuda::device_buffer<float> rows(size);
  cuda::clear(rows.data(), size * sizeof(float), stream_);
  return rows;
}

std::int64_t cuda_products::most_gathered_floats(const room& asked) const {
  const auto most =
      options_.max_rows * std::max({cuts_.q.ends.back(), cuts_.hidden.ends.back(), cuts_.ffn.ends.back()});
  return std::max(most, asked.picked_rows * cuts_.vocab.ends.back());
}

cuda::row_codes cuda_products::codes_for(std::span<const linear_product> products) const {
  const auto any = [&](auto is) {
    return std::any_of(products.begin(), products.end(),
                       [&](const linear_product& each) { return is(each.weights.w.kind); });
  };
  return codes_.view(any(is_integer), any([](scheme kind) { return kind == scheme::bf16; }));
}

bool cuda_products::read_floats(const cuda_layer_pass& at, std::span<const linear_product> products) const {
  return at.shape.lora_tiles > 0 || std::any_of(products.begin(), products.end(), [](const linear_product& each) {
           return each.weights.w.kind == scheme::f32;
         });
}

void cuda_products::normalize(int rows, const norm_weights& norm, const std::int32_t* gather,
                              const cuda::row_codes& codes, bool floats) const {
  if (!norm.weight) return cuda::encode(stream_, hidden(), rows, config_.hidden, codes);
  normalize_rows(stream_, config_,
                 {.rows = rows,
                  .n = config_.hidden,
                  .x = hidden(),
                  .gather = gather,
                  .weight = norm.weight,
                  .bias = norm.bias,
                  .eps = config_.norm_eps,
                  .out = floats ? normed() : float_rows{},
                  .codes = codes});
}

void cuda_products::normalize_for(const cuda_layer_pass& at, const norm_weights& norm,
                                  std::span<const linear_product> products) const {
  normalize(at.shape.rows, norm, nullptr, codes_for(products), read_floats(at, products));
}

void cuda_products::multiply(const cuda_layer_pass& at, float_rows x, std::int64_t ins,
                             std::span<const linear_product> products) {
  multiply(at, x, ins, products, codes_for(products));
}

void cuda_products::multiply(const cuda_layer_pass& at, float_rows x, std::int64_t ins,
                             std::span<const linear_product> products, const cuda::row_codes& codes) {
  std::array<cuda::product, cuda::most_products> jobs;
  for (std::size_t i = 0; i < products.size(); ++i)
    jobs[i] = {products[i].weights.w, made_part(products[i]), products[i].weights.bias, products[i].accumulate};
  cuda::matmul(stream_, std::span(jobs.data(), products.size()),
               {at.shape.rows, x, codes, scratch_.data(), library_.get()});
  if (at.shape.lora_tiles > 0) add_adapters(at, x, ins, products);
}

/// The part of a product's rows that this rank makes.
float_rows cuda_products::made_part(const linear_product& product) const {
  return columns_of(product.to, cuts_.of(product.kind).first_output());
}

void cuda_products::add_adapters(const cuda_layer_pass& at, float_rows x, std::int64_t ins,
                                 std::span<const linear_product> products) {
  cuda::lora_args args{.tiles = at.tables.lora_tiles(at.shape),
                       .tile_count = at.shape.lora_tiles,
                       .most_tile_rows = at.shape.lora_tile_rows,
                       .table = adapters_.table(),
                       .table_stride = adapters_.table_stride(),
                       .most_rank = adapters_.most_rank(),
                       .x = x,
                       .ins = ins,
                       .target_count = static_cast<int>(products.size()),
                       .between = between_.data()};
  for (std::size_t i = 0; i < products.size(); ++i)
    args.targets[i] = {device_adapters::linear(at.own, products[i].kind), products[i].weights.w.outs,
                       made_part(products[i])};
  cuda::lora(stream_, args);
}

cuda_products::linear_product cuda_products::output_product(linear_kind kind, const linear_weights& weights) const {
  if (config_.output_norms) return {kind, weights, normed()};
  return {kind, weights, hidden(), true};
}

void cuda_products::finish_output(const cuda_layer_pass& at, const norm_weights& norm) {
  const bool normed_after = config_.output_norms;
  gather(normed_after ? normed() : hidden(), at.shape.rows, cuts_.hidden);
  if (!normed_after) return;
  normalize_rows(stream_, config_,
                 {.rows = at.shape.rows,
                  .n = config_.hidden,
                  .x = normed(),
                  .weight = norm.weight,
                  .bias = norm.bias,
                  .eps = config_.norm_eps,
                  .out = hidden(),
                  .before = hidden()});
}

void cuda_products::gather(float_rows rows, int count, const column_cut& cut, int root) {
  gather_(stream_, rows, count, cut, root);
}

}  // namespace troupe
