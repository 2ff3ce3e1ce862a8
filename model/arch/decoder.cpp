#include "model/arch/decoder.hpp"

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/arch/cpu/cpu_decoder.hpp"
#include "model/arch/gpu.hpp"

namespace troupe {
namespace {

/// Throws input_error where ranks or stages cannot share such a model so.
decoder::options completed(decoder::options options, const model_config& config) {
  check(options.split, config);
  if (options.layers < 0) options.layers = config.layers - options.first_layer;
  if (options.max_sequences == 0 || options.max_sequences > options.max_rows) options.max_sequences = options.max_rows;
  if (options.context == 0) options.context = options.blocks * block_tokens;
  if (options.rope_context == 0) options.rope_context = options.context;
  if (config.is_one_stage() && options.first_layer > 0)
    refuse(
        "layers of the model read keys of others, or what belongs to a row's token: one worker must have all of them");
  return options;
}

}  // namespace

decoder::decoder(std::shared_ptr<const loaded_model> model, const options& chosen)
    : model_(std::move(model)), options_(completed(chosen, model_->config)) {}

/// What the ranks put together is the first one's alone. Nobody computes with these floats: they are bytes on their
/// way.
void decoder::share_tokens(std::span<std::int32_t> tokens) const {
  if (options_.split.is_whole()) return;
  static_assert(sizeof(float) == sizeof(std::int32_t));
  const std::vector<std::size_t> ends(to_size(options_.split.ranks), tokens.size());
  options_.split.gather({reinterpret_cast<float*>(tokens.data()), tokens.size()}, ends, tensor_split::everyone);
}

kv_kind default_kv(const loaded_model& model) {
  return model.head.kind == scheme::f32 && usual_scheme(model) == scheme::f32 ? kv_kind::f32 : kv_kind::f16;
}

std::unique_ptr<decoder> make_decoder(std::shared_ptr<const loaded_model> model, const decoder::options& chosen,
                                      const compute& with) {
  if (const auto missing = gpus_lack(*model); !chosen.device.is_cpu() && !missing.empty())
    refuse("{}: {}: use the device cpu", name_of(chosen.device), missing);
  if (!chosen.device.is_cpu()) return make_cuda_decoder(std::move(model), chosen);
  return std::make_unique<cpu_decoder>(std::move(model), chosen, with);
}

}  // namespace troupe
