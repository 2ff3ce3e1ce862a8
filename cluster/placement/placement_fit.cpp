#include "cluster/placement/placement_fit.hpp"

#include <algorithm>
#include <limits>

#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

/// Compares pipelines: by the slowest stage, then by how uneven the stages are.
struct slowness {
  double slowest = std::numeric_limits<double>::infinity(), squares = 0;

  slowness with(double time) const { return {std::max(slowest, time), squares + time * time}; }
  friend bool operator<(const slowness& a, const slowness& b) {
    return a.slowest != b.slowest ? a.slowest < b.slowest : a.squares < b.squares;
  }
};

/// Of sums that were made layer by layer.
std::uint64_t in_range(const std::vector<std::uint64_t>& sums, layer_range range) {
  return sums[to_size(range.last + 1)] - sums[to_size(range.first)];
}

/// Cuts so that every stage has room for `tokens`. Nothing if that is impossible.
std::optional<std::vector<layer_range>> cut_layers(const stage_costs& costs, layer_range run,
                                                   const std::vector<placement_unit>& units, std::int64_t tokens) {
  const int layers = run.count(), stages = static_cast<int>(units.size());
  if (stages == 0 || stages > layers) return {};
  // best[s][n]: the first s stages when they hold n layers; from[s][n]: how many the last of them holds.
  std::vector<std::vector<slowness>> best(stages + 1, std::vector<slowness>(layers + 1));
  std::vector<std::vector<int>> from(stages + 1, std::vector<int>(layers + 1, 0));
  best[0][0] = {0, 0};
  for (int s = 1; s <= stages; ++s) {
    const auto& unit = units[s - 1];
    for (int end = s; end <= layers - (stages - s); ++end) {
      for (int begin = s - 1; begin < end; ++begin) {
        const layer_range range{run.first + begin, run.first + end - 1};
        const slowness here = best[s - 1][begin].with(costs.time(range, unit.speed));
        if (!(here < best[s][end]) || costs.kv_tokens(range, unit.memory) < tokens) continue;
        best[s][end] = here;
        from[s][end] = end - begin;
      }
    }
  }
  if (from[stages][layers] == 0) return {};
  std::vector<layer_range> cuts(stages);
  for (int s = stages, end = layers; s > 0; end -= from[s][end], --s)
    cuts[s - 1] = {run.first + end - from[s][end], run.first + end - 1};
  return cuts;
}

}  // namespace

stage_costs::stage_costs(const model_shape& model, int tensor)
    : model_(model), tensor_(static_cast<std::uint64_t>(tensor)), states_{0}, attending_{0} {
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::uint64_t state = model.state_bytes.empty() ? 0 : model.state_bytes[to_size(layer)];
    states_.push_back(states_.back() + state);
    attending_.push_back(attending_.back() + (state == 0 ? 1 : 0));
  }
}

std::uint64_t stage_costs::share(std::uint64_t amount) const {
  return (amount + tensor_ - 1) / tensor_;
}

std::uint64_t stage_costs::weights(layer_range range) const {
  const bool is_first = range.first == 0, is_last = range.last == model_.layers - 1;
  const bool has_own_head = is_last && !(is_first && model_.tied);
  return share(model_.layer_bytes) * static_cast<std::uint64_t>(range.count()) +
         (is_first ? model_.embedding_bytes : 0) + (has_own_head ? share(model_.head_bytes) : 0);
}

std::uint64_t stage_costs::kv_per_token(layer_range range) const {
  const auto heads = static_cast<std::uint64_t>(model_.kv_heads);
  const std::uint64_t each = heads ? model_.kv_bytes / heads * share(heads) : share(model_.kv_bytes);
  return each * in_range(attending_, range);
}

std::uint64_t stage_costs::states(layer_range range) const {
  return in_range(states_, range);
}

std::uint64_t stage_costs::kv_in_all(layer_range range, std::int64_t tokens) const {
  return model_.kv_bytes * in_range(attending_, range) * static_cast<std::uint64_t>(tokens) + states(range);
}

double stage_costs::time(layer_range range, double speed) const {
  const auto layers = static_cast<double>(model_.layer_bytes) * range.count();
  const auto head = range.last == model_.layers - 1 ? static_cast<double>(model_.head_bytes) : 0.0;
  return (layers + head) / speed;
}

std::int64_t stage_costs::kv_tokens(layer_range range, std::uint64_t memory) const {
  const std::uint64_t held = weights(range) + states(range), each = kv_per_token(range);
  if (held > memory) return -1;
  if (each == 0) return std::numeric_limits<std::int32_t>::max() / block_tokens * block_tokens;
  return whole_blocks(static_cast<std::int64_t>(std::min<std::uint64_t>((memory - held) / each, 1ULL << 40)));
}

std::int64_t most_tokens(const stage_costs& costs, const placement_request& request) {
  const layer_range all{0, costs.model().layers - 1};
  const std::uint64_t states = costs.states(all), each = costs.kv_in_all(all, 1) - states;
  const std::uint64_t room = request.kv_memory - std::min(states, request.kv_memory);
  const auto tokens = each ? std::min<std::uint64_t>(room / each, 1ULL << 40) : 1ULL << 20;
  return std::max(least_tokens(request), whole_blocks(static_cast<std::int64_t>(tokens)));
}

std::optional<cut> cut_for_most_tokens(const stage_costs& costs, layer_range run,
                                       const std::vector<placement_unit>& units, std::int64_t least,
                                       std::int64_t most) {
  if (auto all = cut_layers(costs, run, units, most)) return cut{std::move(*all), most};
  auto good = cut_layers(costs, run, units, least);
  if (!good) return {};
  std::int64_t low = least / block_tokens, high = most / block_tokens;  // low fits, high does not
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (auto cuts = cut_layers(costs, run, units, middle * block_tokens)) {
      good = std::move(cuts);
      low = middle;
    } else {
      high = middle;
    }
  }
  return cut{std::move(*good), low * block_tokens};
}

}  // namespace troupe::detail
