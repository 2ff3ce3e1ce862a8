#include "bench/model_work.hpp"

#include <algorithm>

#include "model/arch/kv_storage.hpp"
#include "model/arch/single_sequence.hpp"

namespace troupe::bench {

model_work work_of(const loaded_model& model, kv_kind kv) {
  model_work total;
  const auto add = [&](const matrix_view& w) {
    total.bytes += packed_bytes(w.kind, w.outs, w.ins).total();
    return static_cast<double>(w.outs * w.ins);
  };
  for (const layer_weights& layer : model.layers)
    for (const linear_kind kind : every_linear)
      if (layer[kind].w.weights) total.layer_weights += add(layer[kind].w);
  total.head_weights = add(model.head);
  const auto block = kv_storage::bytes_per_block(model.config, model.config.layers, kv);
  total.kv_bytes = static_cast<double>(block) / block_tokens;
  return total;
}

double least_seconds(const model_work& work, const machine_limits& limits, double rows, double logit_rows,
                     double positions) {
  const double bytes = static_cast<double>(work.bytes) + positions * work.kv_bytes;
  const double operations = 2 * (rows * work.layer_weights + logit_rows * work.head_weights);
  return std::max(bytes / limits.read, operations / limits.products);
}

}  // namespace troupe::bench
