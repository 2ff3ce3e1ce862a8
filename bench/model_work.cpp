#include "bench/model_work.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/blocks.hpp"
#include "model/arch/kv_storage.hpp"

namespace troupe::bench {

namespace {

void set_experts_apart(const loaded_model& model, model_work& total) {
  const model_config& config = model.config;
  total.expert_share = static_cast<double>(config.experts.taken) / static_cast<double>(config.experts.count);
  double weights = 0;
  for (const layer_weights& layer : model.layers)
    for (const expert_weights& expert : layer.experts)
      for (const matrix_view& w : {expert.gate, expert.up, expert.down}) {
        total.expert_bytes += packed_bytes(w.kind, w.outs, w.ins).total();
        weights += static_cast<double>(w.outs * w.ins);
      }
  total.bytes -= total.expert_bytes;
  total.layer_weights -= (1 - total.expert_share) * weights;
}

void add_keys(std::vector<model_work::kv_part>& to, std::int64_t window, double bytes) {
  const double seen = window > 0 ? static_cast<double>(window) : std::numeric_limits<double>::infinity();
  const auto same = [&](const model_work::kv_part& part) { return part.window == seen; };
  const auto found = std::find_if(to.begin(), to.end(), same);
  if (found == to.end())
    to.push_back({seen, bytes});
  else
    found->bytes += bytes;
}

}  // namespace

model_work work_of(const loaded_model& model, kv_kind kv) {
  model_work total;
  const auto add = [&](const matrix_view& w) {
    total.bytes += packed_bytes(w.kind, w.outs, w.ins).total();
    return static_cast<double>(w.outs * w.ins);
  };
  for (const layer_weights& layer : model.layers)
    layer.each_matrix([&](const matrix_view& w) { total.layer_weights += add(w); });
  if (model.token_projection.weights) total.layer_weights += add(model.token_projection);
  if (model.config.experts.count > 0) set_experts_apart(model, total);
  total.head_weights = add(model.head);
  for (std::int64_t layer = 0; layer < model.config.layers; ++layer) {  // those that share keys read them, too
    const auto block = kv_storage::bytes_per_block(model.config, model.config.keys_of(layer), kv);
    add_keys(total.kv, model.config.window_of(layer), static_cast<double>(block) / block_tokens);
  }
  total.state_bytes = 2.0 * static_cast<double>(model.config.state_bytes());
  return total;
}

double model_work::bytes_for(double rows) const {
  return static_cast<double>(bytes) + static_cast<double>(expert_bytes) * (1 - std::pow(1 - expert_share, rows));
}

double model_work::kv_bytes(double positions) const {
  double bytes = 0;
  for (const kv_part& part : kv) bytes += std::min(positions, part.window) * part.bytes;
  return bytes;
}

double model_work::step_bytes(double rows, double logit_rows, double kv_bytes) const {
  return bytes_for(rows) + kv_bytes + logit_rows * state_bytes;
}

double least_seconds(const model_work& work, const machine_limits& limits, double rows, double logit_rows,
                     double kv_bytes) {
  const double bytes = work.step_bytes(rows, logit_rows, kv_bytes);
  const double operations = 2 * (rows * work.layer_weights + logit_rows * work.head_weights);
  return std::max(bytes / limits.read, operations / limits.products);
}

}  // namespace troupe::bench
