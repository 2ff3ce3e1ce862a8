// What the reference computes in layers that keep a state, as the papers write it down.
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/to_size.hpp"
#include "tests/model/train/passes/reference_model.hpp"

namespace troupe {

/// Each channel by itself, over some rows.
reference_model::rows reference_model::convolved(const std::string& name, const rows& x, std::int64_t most) const {
  const std::size_t kernel = to_size(most);
  rows y;
  for (std::size_t r = 0; r < x.size(); ++r) {
    auto& row = y.emplace_back(x[r].size(), 0.0);
    for (std::size_t j = kernel > r ? kernel - 1 - r : 0; j < kernel; ++j)
      for (std::size_t c = 0; c < row.size(); ++c)
        row[c] += weights.at(fmt::format("{}.{}", name, j))[c] * x[r + j + 1 - kernel][c];
  }
  return y;
}

reference_model::rows reference_model::short_convolution(std::int64_t layer, const rows& x) const {
  const std::string prefix = fmt::format("model.layers.{}.conv.", layer);
  const std::size_t hidden = to_size(config_.hidden);
  const rows branches = linear(prefix + "in_proj", x, 3 * config_.hidden);
  rows opened(x.size(), std::vector<double>(hidden));
  for (std::size_t r = 0; r < x.size(); ++r)
    for (std::size_t c = 0; c < hidden; ++c) opened[r][c] = branches[r][c] * branches[r][2 * hidden + c];
  rows out = convolved(prefix + "conv", opened, config_.convolved_rows);
  for (std::size_t r = 0; r < x.size(); ++r)
    for (std::size_t c = 0; c < hidden; ++c) out[r][c] *= branches[r][hidden + c];
  return linear(prefix + "out_proj", out, config_.hidden);
}

/// As the gated delta rule is written down: S <- decay S; S <- S + beta k (v - k S); out = q S.
reference_model::rows reference_model::linear_attention(std::int64_t layer, const rows& x) const {
  const std::string prefix = fmt::format("model.layers.{}.linear_attn.", layer);
  const delta_config& delta = config_.delta;
  const std::size_t key_dim = to_size(delta.key_dim), value_dim = to_size(delta.value_dim);
  rows qkv = convolved(prefix + "conv1d", linear(prefix + "in_proj_qkv", x, delta.channels()), delta.kernel);
  for (auto& row : qkv)
    for (double& value : row) value *= sigmoid(value);
  const rows z = linear(prefix + "in_proj_z", x, delta.values());
  const rows b = linear(prefix + "in_proj_b", x, delta.value_heads);
  const rows a = linear(prefix + "in_proj_a", x, delta.value_heads);
  const auto unit = [&](std::size_t row, std::int64_t first) {
    std::vector<double> head(qkv[row].begin() + first, qkv[row].begin() + first + delta.key_dim);
    const double length = std::sqrt(std::inner_product(head.begin(), head.end(), head.begin(), 1e-6));
    for (double& value : head) value /= length;
    return head;
  };
  rows out(x.size(), std::vector<double>(to_size(delta.values())));
  for (std::int64_t head = 0; head < delta.value_heads; ++head) {
    const double weight = weights.at(prefix + "decay.weight")[to_size(head)];
    const double rate = delta.has_rates ? -weight : std::exp(weight);
    const std::int64_t key = delta.key_head_of(head) * delta.key_dim, column = head * delta.value_dim;
    rows state(key_dim, std::vector<double>(value_dim, 0.0));
    for (std::size_t r = 0; r < x.size(); ++r) {
      const auto q = unit(r, key), k = unit(r, delta.keys() + key);
      const double decay =
          std::exp(-rate * std::log1p(std::exp(a[r][to_size(head)] + weights.at(prefix + "dt.bias")[to_size(head)])));
      std::vector<double> answer(value_dim, 0.0);
      for (std::size_t c = 0; c < value_dim; ++c) {
        double said = 0;
        for (std::size_t i = 0; i < key_dim; ++i) said += k[i] * (state[i][c] *= decay);
        const double change = sigmoid(b[r][to_size(head)]) * (qkv[r][to_size(2 * delta.keys() + column) + c] - said);
        for (std::size_t i = 0; i < key_dim; ++i) answer[c] += q[i] * (state[i][c] += k[i] * change);
        answer[c] /= std::sqrt(static_cast<double>(delta.key_dim));
      }
      answer = rms(prefix + "norm", answer);
      for (std::size_t c = 0; c < value_dim; ++c) {
        const double gate = z[r][to_size(column) + c];
        out[r][to_size(column) + c] = answer[c] * gate * sigmoid(gate);
      }
    }
  }
  return linear(prefix + "out_proj", out, config_.hidden);
}

/// As Mamba-2 writes it down: dt = softplus(a + bias); S <- e^(-rate dt) S + dt v k; out = S q + skip v, times silu(z),
/// and then the norm of each group.
reference_model::rows reference_model::state_space(std::int64_t layer, const rows& x) const {
  const std::string prefix = fmt::format("model.layers.{}.linear_attn.", layer);
  const delta_config& delta = config_.delta;
  const std::size_t key_dim = to_size(delta.key_dim), value_dim = to_size(delta.value_dim),
                    values = to_size(delta.values());
  rows vkq = convolved(prefix + "conv1d", linear(prefix + "in_proj_qkv", x, delta.channels()), delta.kernel);
  const auto bias = weights.find(prefix + "conv1d.bias");
  for (auto& row : vkq)
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (bias != weights.end()) row[c] += bias->second[c];
      row[c] *= sigmoid(row[c]);
    }
  const rows z = linear(prefix + "in_proj_z", x, delta.values());
  const rows a = linear(prefix + "in_proj_a", x, delta.value_heads);
  rows out(x.size(), std::vector<double>(values));
  for (std::size_t head = 0; head < to_size(delta.value_heads); ++head) {
    const double weight = weights.at(prefix + "decay.weight")[head], skip = weights.at(prefix + "skip.weight")[head];
    const double rate = delta.has_rates ? -weight : std::exp(weight);
    const std::size_t group = head / to_size(delta.value_heads / delta.key_heads), first = head * value_dim;
    const std::size_t k = values + group * key_dim, q = k + to_size(delta.keys());
    rows state(value_dim, std::vector<double>(key_dim, 0.0));
    for (std::size_t r = 0; r < x.size(); ++r) {
      const double dt = std::log1p(std::exp(a[r][head] + weights.at(prefix + "dt.bias")[head]));
      for (std::size_t c = 0; c < value_dim; ++c) {
        const double v = vkq[r][first + c], gate = z[r][first + c];
        double answer = skip * v;
        for (std::size_t i = 0; i < key_dim; ++i) {
          state[c][i] = std::exp(-rate * dt) * state[c][i] + dt * v * vkq[r][k + i];
          answer += state[c][i] * vkq[r][q + i];
        }
        out[r][first + c] = answer * gate * sigmoid(gate);
      }
    }
  }
  const std::vector<double>& norm = weights.at(prefix + "norm.weight");
  const std::size_t size = values / to_size(delta.key_heads);
  for (auto& row : out)
    for (std::size_t first = 0; first < values; first += size) {
      double squares = 0;
      for (std::size_t c = first; c < first + size; ++c) squares += row[c] * row[c];
      const double root = std::sqrt(squares / static_cast<double>(size) + static_cast<double>(delta.norm_eps));
      for (std::size_t c = first; c < first + size; ++c) row[c] *= norm[c] / root;
    }
  return linear(prefix + "out_proj", out, config_.hidden);
}

}  // namespace troupe
