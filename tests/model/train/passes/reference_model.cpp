#include "tests/model/train/passes/reference_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/to_size.hpp"
#include "model/arch/weight_list.hpp"
#include "model/formats/model_files.hpp"
#include "model/ops/pack.hpp"
#include "model/ops/rope.hpp"

namespace troupe {
namespace {

std::vector<double> unpacked(const matrix_view& w) {
  std::vector<double> values;
  std::vector<float> row(to_size(w.ins));
  for (std::int64_t out = 0; out < w.outs; ++out) {
    unpack_row(w, out, row.data());
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

std::size_t at(std::int64_t i) {
  return to_size(i);
}

}  // namespace

reference_model::reference_model(const loaded_model& model) : config_(model.config) {
  const auto vector = [&](const std::string& name, const float* from, std::int64_t n) {
    if (from) weights[name].assign(from, from + n);
  };
  const auto norm = [&](const std::string& name, const norm_weights& w, std::int64_t n) {
    vector(name + ".weight", w.weight, n);
    vector(name + ".bias", w.bias, n);
  };
  const auto linear = [&](const std::string& name, const linear_weights& w) {
    if (!w.w.weights) return;
    weights[name + ".weight"] = unpacked(w.w);
    vector(name + ".bias", w.bias, w.w.outs);
  };
  weights["model.embed_tokens.weight"] = unpacked(model.embeddings);
  if (!config_.tied_embeddings) weights["lm_head.weight"] = unpacked(model.head);
  for (std::int64_t i = 0; model.positions && i < config_.context; ++i) {
    auto& to = weights["model.embed_positions.weight"];
    const float* row = model.positions + i * padded_row(config_.hidden);
    to.insert(to.end(), row, row + config_.hidden);
  }
  norm("model.norm", model.final_norm, config_.hidden);
  if (config_.layer_embedding > 0) {
    weights["tokens.weight"] = unpacked(model.token_embeddings);
    weights["projection.weight"] = unpacked(model.token_projection);
    norm("projection_norm", model.token_projection_norm, config_.layer_embedding);
  }
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    const layer_weights& l = model.layers[at(i)];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    norm(prefix + "input_layernorm", l.attention_norm, config_.hidden);
    norm(prefix + "post_attention_layernorm", l.mlp_norm, config_.hidden);
    norm(prefix + "self_attn.output_norm", l.attention_output_norm, config_.hidden);
    norm(prefix + "mlp.output_norm", l.mlp_output_norm, config_.hidden);
    const latent_config& latent = config_.latent;
    norm(prefix + "self_attn.q_norm", l.q_norm, config_.is_latent() ? latent.query_rank : config_.q_norm_size(i));
    norm(prefix + "self_attn.k_norm", l.k_norm, config_.is_latent() ? latent.rank : config_.k_norm_size(i));
    for (std::size_t h = 0; h < l.heads.size(); ++h) {
      weights[fmt::format("{}heads.{}.query", prefix, h)] = unpacked(l.heads[h].query);
      weights[fmt::format("{}heads.{}.value", prefix, h)] = unpacked(l.heads[h].value);
    }
    norm(prefix + "beside", l.apart.beside, config_.hidden);
    norm(prefix + "experts", l.apart.experts, config_.hidden);
    norm(prefix + "experts_output", l.apart.experts_output, config_.hidden);
    norm(prefix + "router", l.apart.router, config_.hidden);
    vector(prefix + "mlp.share_factors", l.apart.share_factors, config_.experts.count);
    norm(prefix + "token_norm", l.token_norm, config_.hidden);
    vector(prefix + "factor", l.factor, 1);
    for (const linear_kind kind : every_linear) linear(fmt::format("{}{}", prefix, name_of(kind)), l[kind]);
    vector(prefix + "self_attn.sinks", l.sinks, config_.heads);
    const delta_config& delta = config_.delta;
    for (std::int64_t row = 0; l.delta.convolution && row < delta.kernel; ++row)
      vector(fmt::format("{}linear_attn.conv1d.{}", prefix, row),
             l.delta.convolution + row * padded_row(delta.channels()), delta.channels());
    vector(prefix + "linear_attn.conv1d.bias", l.delta.convolution_bias, delta.channels());
    vector(prefix + "linear_attn.dt.bias", l.delta.dt_bias, delta.value_heads);
    vector(prefix + "linear_attn.decay.weight", l.delta.decay, delta.value_heads);
    vector(prefix + "linear_attn.skip.weight", l.delta.skip, delta.value_heads);
    vector(prefix + "linear_attn.norm.weight", l.delta.norm, delta.norm_weights());
    for (std::int64_t row = 0; l.convolution && row < config_.convolved_rows; ++row)
      vector(fmt::format("{}conv.conv.{}", prefix, row), l.convolution + row * padded_row(config_.hidden),
             config_.hidden);
    linear(prefix + "mlp.router", {l.router, l.router_bias});
    linear(prefix + "mlp.shared_gate", {l.shared_gate});
    vector(prefix + "mlp.choice_bias", l.choice_bias, config_.experts.count);
    for (std::size_t e = 0; e < l.experts.size(); ++e) {
      const std::string expert = fmt::format("{}mlp.experts.{}.", prefix, e);
      const auto& [gate, up, down, biases] = l.experts[e];
      linear(expert + "gate_proj", {gate, biases.gate});
      linear(expert + "up_proj", {up, biases.up});
      linear(expert + "down_proj", {down, biases.down});
    }
  }
}

reference_model::rows reference_model::linear(const std::string& module, const rows& x, std::int64_t outs) const {
  const auto& w = weights.at(module + ".weight");
  const auto bias = weights.find(module + ".bias");
  const auto lora = adapter.find(module);
  rows y;
  for (const auto& row : x) {
    const std::size_t ins = row.size();
    auto& out = y.emplace_back(at(outs), 0.0);
    std::vector<double> between(lora == adapter.end() ? 0 : at(lora->second.rank), 0.0);
    for (std::size_t r = 0; r < between.size(); ++r)
      for (std::size_t i = 0; i < ins; ++i) between[r] += lora->second.a[r * ins + i] * row[i];
    for (std::size_t o = 0; o < out.size(); ++o) {
      for (std::size_t i = 0; i < ins; ++i) out[o] += w[o * ins + i] * row[i];
      if (bias != weights.end()) out[o] += bias->second[o];
      for (std::size_t r = 0; r < between.size(); ++r)
        out[o] += lora->second.scale * lora->second.b[o * between.size() + r] * between[r];
    }
  }
  return y;
}

std::vector<double> reference_model::rms(const std::string& name, std::vector<double> x) const {
  double squares = 0;
  for (const double v : x) squares += v * v;
  const double factor =
      1.0 / std::sqrt(squares / static_cast<double>(x.size()) + static_cast<double>(config_.norm_eps));
  const auto& w = weights.at(name + ".weight");
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= factor * w[i];
  return x;
}

reference_model::rows reference_model::norm(const std::string& name, const rows& x) const {
  if (!weights.contains(name + ".weight")) return x;
  rows y;
  for (auto row : x) {
    if (config_.norm == norm_kind::rms) {
      y.push_back(rms(name, row));
      continue;
    }
    double mean = 0, squares = 0;
    for (const double v : row) mean += v / static_cast<double>(row.size());
    for (const double v : row) squares += (v - mean) * (v - mean) / static_cast<double>(row.size());
    const double factor = 1.0 / std::sqrt(squares + static_cast<double>(config_.norm_eps));
    const auto bias = weights.find(name + ".bias");
    for (std::size_t i = 0; i < row.size(); ++i)
      row[i] =
          (row[i] - mean) * factor * weights.at(name + ".weight")[i] + (bias == weights.end() ? 0 : bias->second[i]);
    y.push_back(row);
  }
  return y;
}

void reference_model::place(std::int64_t layer, const std::string& norm, std::vector<double>& head,
                            std::int64_t position) const {
  if (config_.norms_each_head()) head = rms(norm, head);
  const layer_rope kind = config_.rope_of(layer);
  if (kind == layer_rope::none) return;
  const rope_config& rope = kind == layer_rope::local ? config_.local_rope : config_.rope;
  const std::size_t half = at(config_.turned_dim(kind) / 2);
  std::vector<float> cosines(half), sines(half);
  rope_angles(rope, config_.turned_dim(kind), config_.context).at(position, cosines.data(), sines.data());
  for (std::size_t i = 0; i < half; ++i) {
    const double a = head[i], b = head[half + i], c = cosines[i], s = sines[i];
    head[i] = a * c - b * s;
    head[half + i] = b * c + a * s;
  }
}

reference_model::rows reference_model::attention(std::int64_t layer, const rows& x) const {
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  const std::int64_t dim = config_.head_dim_of(layer), kv_heads = config_.kv_heads_of(layer);
  const std::int64_t group = config_.heads / kv_heads;
  const std::int64_t window = config_.window_of(layer);
  const bool gated = config_.attention_gate;  // then the gates lie behind all queries
  rows q = linear(prefix + "q_proj", x, config_.heads * dim * (gated ? 2 : 1));
  const std::int64_t source = config_.keys_of(layer);
  const std::string keys_norm = fmt::format("model.layers.{}.self_attn.k_norm", source);
  if (source == layer) {
    made_[layer].k = linear(prefix + "k_proj", x, kv_heads * dim);
    made_[layer].v = config_.has_values(layer) ? linear(prefix + "v_proj", x, kv_heads * dim) : made_[layer].k;
    if (config_.unit_values) made_[layer].v = unit_heads(made_[layer].v, dim);
  }
  rows k = made_[source].k;
  const rows& v = made_[source].v;
  if (config_.joint_qk_norm) q = norm(prefix + "q_norm", q), k = norm(prefix + "k_norm", k);
  rows out(x.size(), std::vector<double>(at(config_.heads * dim), 0.0));
  const auto head_of = [&](const rows& from, std::size_t row, std::int64_t head) {
    return std::vector<double>(from[row].begin() + head * dim, from[row].begin() + (head + 1) * dim);
  };
  for (std::int64_t head = 0; head < config_.heads; ++head) {
    rows keys;
    for (std::size_t j = 0; j < x.size(); ++j) {
      keys.push_back(head_of(k, j, head / group));
      place(layer, keys_norm, keys.back(), static_cast<std::int64_t>(j));
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto query = head_of(q, i, head);
      place(layer, prefix + "q_norm", query, static_cast<std::int64_t>(i));
      const std::size_t first = window > 0 && static_cast<std::int64_t>(i) >= window ? i + 1 - at(window) : 0;
      std::vector<double> weight(i + 1 - first);
      const auto sinks = weights.find(prefix + "sinks");
      double total = sinks == weights.end() ? 0 : std::exp(sinks->second[at(head)]);
      for (std::size_t j = first; j <= i; ++j) {
        double score = 0;
        for (std::size_t d = 0; d < at(dim); ++d) score += query[d] * keys[j][d];
        total += weight[j - first] =
            std::exp(capped(score / static_cast<double>(config_.score_divisor()), config_.score_cap));
      }
      for (std::size_t j = first; j <= i; ++j)
        for (std::size_t d = 0; d < at(dim); ++d)
          out[i][at(head * dim) + d] += weight[j - first] / total * v[j][at(head / group * dim) + d];
    }
  }
  for (std::size_t r = 0; gated && r < out.size(); ++r)
    for (std::size_t i = 0; i < out[r].size(); ++i) out[r][i] *= sigmoid(q[r][out[r].size() + i]);
  return linear(prefix + "o_proj", out, config_.hidden);
}

/// As it is written down: each head's keys and values are made of the row that is kept.
reference_model::rows reference_model::latent_attention(std::int64_t layer, const rows& x) const {
  const std::string prefix = fmt::format("model.layers.{}.self_attn.", layer);
  const latent_config& latent = config_.latent;
  const std::size_t turned = at(latent.turned), plain = at(latent.plain), rank = at(latent.rank);
  const std::size_t value_size = at(latent.value);
  const rows down =
      latent.query_rank > 0 ? norm(prefix + "q_norm", linear(prefix + "q_down_proj", x, latent.query_rank)) : x;
  const rows queries = linear(prefix + "q_proj", down, config_.heads * latent.query());
  rows kept = linear(prefix + "k_proj", x, latent.row());
  rows out(x.size(), std::vector<double>(at(config_.heads * latent.value), 0.0));
  for (auto& row : kept) {
    const auto normed = rms(prefix + "k_norm", {row.begin() + latent.turned, row.end()});
    std::copy(normed.begin(), normed.end(), row.begin() + latent.turned);
  }
  for (std::size_t head = 0; head < at(config_.heads); ++head) {
    const auto& by_query = weights.at(fmt::format("model.layers.{}.heads.{}.query", layer, head));  // [rank, plain]
    const auto& by_value = weights.at(fmt::format("model.layers.{}.heads.{}.value", layer, head));  // [value, rank]
    rows keys, values;
    for (std::size_t j = 0; j < x.size(); ++j) {
      auto& key = keys.emplace_back(kept[j].begin(), kept[j].begin() + latent.turned);
      place(layer, "", key, static_cast<std::int64_t>(j));
      key.resize(turned + plain);
      auto& value = values.emplace_back(value_size, 0.0);
      for (std::size_t r = 0; r < rank; ++r) {
        for (std::size_t n = 0; n < plain; ++n) key[turned + n] += by_query[r * plain + n] * kept[j][turned + r];
        for (std::size_t v = 0; v < value_size; ++v) value[v] += by_value[v * rank + r] * kept[j][turned + r];
      }
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto first = queries[i].begin() + static_cast<std::ptrdiff_t>(head) * latent.query();
      std::vector<double> query(first, first + latent.query()), weight(i + 1);
      place(layer, "", query, static_cast<std::int64_t>(i));
      double total = 0;
      for (std::size_t j = 0; j <= i; ++j) {
        const double score = std::inner_product(query.begin(), query.end(), keys[j].begin(), 0.0);
        total += weight[j] = std::exp(score / static_cast<double>(config_.score_divisor()));
      }
      for (std::size_t j = 0; j <= i; ++j)
        for (std::size_t v = 0; v < value_size; ++v) out[i][head * value_size + v] += weight[j] / total * values[j][v];
    }
  }
  return linear(prefix + "o_proj", out, config_.hidden);
}

/// A norm without weights over each head.
reference_model::rows reference_model::unit_heads(rows x, std::int64_t dim) const {
  for (auto& row : x)
    for (auto head = row.begin(); head != row.end(); head += dim) {
      const double squares = std::inner_product(head, head + dim, head, 0.0) / static_cast<double>(dim);
      const double factor = 1 / std::sqrt(squares + static_cast<double>(config_.norm_eps));
      for (auto value = head; value != head + dim; ++value) *value *= factor;
    }
  return x;
}

reference_model::rows reference_model::mixed(std::int64_t layer, const rows& x) const {
  const mixer_kind mixer = config_.mixer_of(layer);
  if (mixer == mixer_kind::delta && config_.delta.is_state_space) return state_space(layer, x);
  if (mixer == mixer_kind::delta) return linear_attention(layer, x);
  if (config_.is_latent()) return latent_attention(layer, x);
  return mixer == mixer_kind::convolution ? short_convolution(layer, x) : attention(layer, x);
}

double reference_model::capped(double x, float cap) {
  return cap == 0 ? x : static_cast<double>(cap) * std::tanh(x / static_cast<double>(cap));
}

double reference_model::active(double x) const {
  if (config_.activation == activation_kind::silu) return x / (1 + std::exp(-x));
  if (config_.activation == activation_kind::squared_relu) return x > 0 ? x * x : 0;
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

reference_model::rows reference_model::mlp(const std::string& prefix, const rows& x) const {
  const auto width = static_cast<std::int64_t>(weights.at(prefix + "up_proj.weight").size()) / config_.hidden;
  rows up = linear(prefix + "up_proj", x, width);
  const rows gate = config_.gated_mlp ? linear(prefix + "gate_proj", x, width) : rows{};
  for (std::size_t r = 0; r < up.size(); ++r)
    for (std::size_t i = 0; i < up[r].size(); ++i) {
      double& u = up[r][i];
      if (config_.activation == activation_kind::clamped_silu) {
        const double limit = config_.activation_limit, g = std::min(gate[r][i], limit);
        u = g / (1 + std::exp(-static_cast<double>(config_.activation_slope) * g)) * (std::clamp(u, -limit, limit) + 1);
        continue;
      }
      u = config_.gated_mlp ? active(gate[r][i]) * u : active(u);
    }
  return linear(prefix + "down_proj", up, config_.hidden);
}

double reference_model::sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// Each row by itself: the shares of the experts are a softmax of the router's scores, or made of their sigmoids.
reference_model::rows reference_model::mixture(const std::string& prefix, const rows& x, const rows& routed) const {
  const rows scores = linear(prefix + "router", routed, config_.experts.count);
  const auto factors = weights.find(prefix + "share_factors");
  const auto biases = weights.find(prefix + "choice_bias");
  rows y(x.size(), std::vector<double>(at(config_.hidden), 0.0));
  for (std::size_t r = 0; r < x.size(); ++r) {
    std::vector<std::size_t> experts(at(config_.experts.count));
    std::iota(experts.begin(), experts.end(), std::size_t{0});
    const auto weight = [&](std::size_t e) {
      return config_.experts.sigmoid_shares ? sigmoid(scores[r][e]) : std::exp(scores[r][e]);
    };
    double all = 0;
    for (const std::size_t e : experts) all += weight(e);
    const double whole = config_.experts.sigmoid_shares ? 1 : all;
    const auto worth = [&](std::size_t e) {
      return weight(e) / whole + (biases == weights.end() ? 0 : biases->second[e]);
    };
    std::sort(experts.begin(), experts.end(), [&](auto a, auto b) { return worth(a) > worth(b); });
    if (config_.experts.groups > 1) {
      const auto groups = best_groups(worth);
      std::stable_partition(experts.begin(), experts.end(), [&](auto e) { return groups.contains(group_of(e)); });
    }
    const std::size_t taken = at(config_.experts.taken),
                      counted = config_.experts.whole_shares ? taken : experts.size();
    double total = 0;
    for (std::size_t i = 0; i < counted; ++i) total += weight(experts[i]);
    if (config_.experts.sigmoid_shares && !config_.experts.whole_shares) total = 1;
    for (std::size_t i = 0; i < taken; ++i) {
      const auto made = mlp(fmt::format("{}experts.{}.", prefix, experts[i]), {x[r]});
      const double factor =
          factors == weights.end() ? static_cast<double>(config_.experts.share_factor) : factors->second[experts[i]];
      const double share = weight(experts[i]) / total * factor;
      for (std::size_t d = 0; d < y[r].size(); ++d) y[r][d] += share * made[0][d];
    }
  }
  return y;
}

std::int64_t reference_model::group_of(std::size_t expert) const {
  return static_cast<std::int64_t>(expert) / (config_.experts.count / config_.experts.groups);
}

std::set<std::int64_t> reference_model::best_groups(const std::function<double(std::size_t)>& worth) const {
  std::vector<std::pair<double, std::int64_t>> by_worth;
  for (std::int64_t group = 0; group < config_.experts.groups; ++group) {
    std::vector<double> worths;
    for (std::size_t e = 0; e < at(config_.experts.count); ++e)
      if (group_of(e) == group) worths.push_back(worth(e));
    std::sort(worths.rbegin(), worths.rend());
    by_worth.emplace_back(std::accumulate(worths.begin(), worths.begin() + config_.experts.group_best, 0.0), group);
  }
  std::sort(by_worth.rbegin(), by_worth.rend());
  std::set<std::int64_t> best;
  for (std::int64_t i = 0; i < config_.experts.groups_taken; ++i) best.insert(by_worth[at(i)].second);
  return best;
}

/// Of the mlp beside the experts.
reference_model::rows reference_model::shared(const std::string& prefix, const rows& x) const {
  rows y = mlp(prefix, x);
  if (!config_.experts.shared_gate) return y;
  const rows scores = linear(prefix + "shared_gate", x, 1);
  for (std::size_t r = 0; r < y.size(); ++r)
    for (double& value : y[r]) value *= sigmoid(scores[r][0]);
  return y;
}

/// Experts and the mlp beside them, each with norms of its own. `prefix`: of the layer.
reference_model::rows reference_model::apart(const std::string& prefix, const rows& x) const {
  rows y = norm(prefix + "beside", mlp(prefix + "mlp.", norm(prefix + "post_attention_layernorm", x)));
  const rows chosen = norm(prefix + "experts_output",
                           mixture(prefix + "mlp.", norm(prefix + "experts", x), norm(prefix + "router", x)));
  for (std::size_t r = 0; r < y.size(); ++r)
    for (std::size_t d = 0; d < y[r].size(); ++d) y[r][d] += chosen[r][d];
  return y;
}

/// What each row brings to all layers.
reference_model::rows reference_model::numbers_of(const training_rows& batch, const training_rows::segment& segment,
                                                  const rows& embedded) const {
  const std::int64_t width = config_.layer_embedding, all = config_.layers * width;
  rows numbers = linear("projection", embedded, all);
  const auto& table = weights.at("tokens.weight");
  for (std::size_t r = 0; r < numbers.size(); ++r) {
    const auto token = static_cast<std::int64_t>(batch.tokens[at(segment.first) + r]);
    for (std::int64_t first = 0; first < all; first += width) {
      std::vector<double> part(numbers[r].begin() + first, numbers[r].begin() + first + width);
      for (double& value : part) value /= std::sqrt(static_cast<double>(config_.hidden));
      part = rms("projection_norm", part);
      for (std::int64_t i = 0; i < width; ++i)
        numbers[r][at(first + i)] =
            (part[at(i)] + table[at(token * all + first + i)] * std::sqrt(static_cast<double>(width))) / std::sqrt(2.0);
    }
  }
  return numbers;
}

/// What leaves the layer.
reference_model::rows reference_model::with_tokens(std::int64_t layer, const rows& x, const rows& numbers) const {
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  rows y = x;
  if (config_.layer_embedding > 0) {
    const std::int64_t width = config_.layer_embedding;
    rows gates = linear(prefix + "per_layer_input_gate", x, width);
    for (std::size_t r = 0; r < gates.size(); ++r)
      for (std::int64_t i = 0; i < width; ++i)
        gates[r][at(i)] = active(gates[r][at(i)]) * numbers[r][at(layer * width + i)];
    const rows more = norm(prefix + "token_norm", linear(prefix + "per_layer_projection", gates, config_.hidden));
    for (std::size_t r = 0; r < y.size(); ++r)
      for (std::size_t d = 0; d < y[r].size(); ++d) y[r][d] += more[r][d];
  }
  if (const auto factor = weights.find(prefix + "factor"); factor != weights.end())
    for (auto& row : y)
      for (double& value : row) value *= factor->second[0];
  return y;
}

double reference_model::segment_loss(const training_rows& batch, const training_rows::segment& segment) const {
  const auto& table = weights.at("model.embed_tokens.weight");
  const auto positions = weights.find("model.embed_positions.weight");
  const auto hidden = at(config_.hidden);
  rows x;
  for (std::int64_t i = 0; i < segment.rows; ++i) {
    const auto token = at(batch.tokens[at(segment.first + i)]);
    auto& row = x.emplace_back(table.begin() + static_cast<std::ptrdiff_t>(token * hidden),
                               table.begin() + static_cast<std::ptrdiff_t>((token + 1) * hidden));
    for (double& value : row) value *= static_cast<double>(config_.embedding_factor);
    if (positions != weights.end())
      for (std::size_t d = 0; d < hidden; ++d) row[d] += positions->second[at(i) * hidden + d];
  }
  const rows numbers = config_.layer_embedding > 0 ? numbers_of(batch, segment, x) : rows();
  const auto add = [&](const std::string& output_norm, rows more) {
    if (config_.output_norms) more = norm(output_norm, more);
    for (std::size_t r = 0; r < x.size(); ++r)
      for (std::size_t d = 0; d < hidden; ++d) x[r][d] += more[r][d];
  };
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const rows first = norm(prefix + "input_layernorm", x);
    add(prefix + "self_attn.output_norm", mixed(layer, first));
    if (config_.experts.apart) {
      add(prefix + "mlp.output_norm", apart(prefix, x));
      x = with_tokens(layer, x, numbers);
      continue;
    }
    const rows normed = config_.parallel ? first : norm(prefix + "post_attention_layernorm", x);
    if (config_.has_experts(layer)) add("", mixture(prefix + "mlp.", normed, normed));
    if (config_.mlp_width(layer) == 0) continue;
    add(prefix + "mlp.output_norm",
        config_.has_experts(layer) ? shared(prefix + "mlp.", normed) : mlp(prefix + "mlp.", normed));
    x = with_tokens(layer, x, numbers);
  }
  const rows last = norm("model.norm", x);
  const auto& head = config_.tied_embeddings ? table : weights.at("lm_head.weight");
  double loss = 0;
  for (std::size_t r = 0; r < last.size(); ++r) {
    const std::int32_t target = batch.targets[at(segment.first) + r];
    if (target < 0) continue;
    double total = 0, wanted = 0;
    for (std::size_t token = 0; token < at(config_.vocab_size); ++token) {
      double logit = 0;
      for (std::size_t d = 0; d < hidden; ++d) logit += head[token * hidden + d] * last[r][d];
      logit = capped(logit * static_cast<double>(config_.logit_factor), config_.logit_cap);
      total += std::exp(logit);
      if (token == at(target)) wanted = logit;
    }
    loss += std::log(total) - wanted;
  }
  return loss;
}

double reference_model::loss(const training_rows& batch) const {
  double total = 0;
  for (const auto& segment : batch.segments) total += segment_loss(batch, segment);
  return total;
}

}  // namespace troupe
