#include "model/arch/preload.hpp"

#include "base/to_size.hpp"

namespace troupe {
namespace {

void bring_in(const matrix_view& w) {
  mapped_file::preload({w.weights, packed_bytes(w.kind, w.outs, w.ins).total()});
}

}  // namespace

void preload(const loaded_model& model, std::int64_t first_layer, std::int64_t layers) {
  const std::int64_t end = first_layer + layers;
  if (first_layer == 0) bring_in(model.embeddings);
  for (std::int64_t i = first_layer; i < end; ++i) model.layers[to_size(i)].each_matrix(bring_in);
  if (end == static_cast<std::int64_t>(model.layers.size())) bring_in(model.head);
}

}  // namespace troupe
