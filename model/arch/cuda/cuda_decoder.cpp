#include "model/arch/cuda/cuda_decoder.hpp"

#include <algorithm>
#include <exception>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/arch/device.hpp"

namespace troupe {
namespace {

constexpr int most_picked_rows = 256;  // logits of more are made part by part: a vocabulary is wide

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
      weights_(*model_, options_.first_layer, options_.layers, stream_, options_.split),
      tables_(options_.max_rows, options_.max_sequences, options_.context,
              static_cast<int>(model_->config.heads_per_kv(options_.first_layer))),
      picked_rows_(std::min(options_.max_rows, most_picked_rows)),
      products_(model_->config, options_, stream_, room_asked()),
      attention_(products_, options_),
      mlp_(products_, options_, weights_.layers),
      remark_(products_.take_library(weights_.layers)),
      picked_(to_size(options_.max_rows)),
      largest_(picked_.size()),
      picked_on_device_(picked_.size()),
      largest_on_device_(picked_.size()) {
  if (is_last()) logits_ = cuda::device_buffer<float>(to_size(picked_rows_ * logit_stride()));
  stream_.wait();
}

cuda_products::room cuda_decoder::room_asked() const {
  return {.scratch_floats = std::max(cuda_attention::scratch_floats(model_->config, options_),
                                     cuda::argmax_scratch_floats(picked_rows_)),
          .picked_rows = is_last() ? picked_rows_ : 0};
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
  device_adapters& adapters = products_.adapters();
  const auto* table = adapters.table();
  const int rank = adapters.most_rank();
  adapters.add(adapter, stream_);
  if (table != adapters.table() || rank != adapters.most_rank()) recorded_.clear();  // they name the old ones
}

void cuda_decoder::remove_adapter(const lora_adapter& adapter) {
  use();
  products_.adapters().remove(adapter, stream_);
}

void cuda_decoder::copy_block(std::int64_t from, std::int64_t to) {
  use();
  attention_.copy_block(from, to);
}

void cuda_decoder::embed(const pass&, std::span<const std::int32_t> tokens, float*) {
  tokens_.assign(tokens.begin(), tokens.end());
}

void cuda_decoder::run(const pass& batch, float* hidden) {
  if (batch.rows == 0) return;
  use();
  const pass_shape shape = tables_.fill(batch, tokens_, products_.adapters());
  tokens_.clear();
  tables_.upload(shape, stream_);
  const auto floats = to_size(batch.rows * hidden_stride());
  if (!is_first()) {
    cuda::copy(products_.hidden().data, hidden, floats, stream_);
    stream_.wait();  // the caller may write to `hidden` again
  }
  if (is_decode(batch) && options_.split.is_whole())
    run_decode(shape);
  else
    run_pass(shape);
  if (is_last()) return;
  cuda::copy(hidden, products_.hidden().data, floats, stream_);
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
  if (is_first()) embed_rows(shape);
  for (std::int64_t own = 0; own < options_.layers; ++own) {
    const cuda_layer_pass at{shape, tables_, options_.first_layer + own, own, weights_.layers[to_size(own)]};
    attention_.run(at);
    mlp_.run(at);
  }
}

void cuda_decoder::embed_rows(const pass_shape& shape) {
  cuda::embed(stream_, {.table = weights_.embeddings,
                        .factor = model_->config.embedding_factor,
                        .rows = shape.rows,
                        .tokens = tables_.tokens(),
                        .learned = weights_.positions,
                        .learned_stride = hidden_stride(),
                        .positions = tables_.places(shape).positions,
                        .out = products_.hidden()});
}

}  // namespace troupe
