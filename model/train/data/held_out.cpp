#include "model/train/data/held_out.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/fnv_hash.hpp"
#include "base/to_size.hpp"
#include "model/train/data/batch_plan.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t stream = 1u << 20;

/// A line's or document's examples: [first, first + count).
struct example_group {
  std::size_t first = 0, count = 0;
};

std::vector<example_group> groups_of(const training_data& data) {
  std::vector<example_group> groups;
  for (std::size_t i = 0; i < data.examples.size(); ++i) {
    const bool is_more = i > 0 && !data.sources.empty() && data.sources[i] == data.sources[i - 1];
    if (!is_more) groups.push_back({i, 0});
    ++groups.back().count;
  }
  return groups;
}

std::vector<example_group> one_by_one(std::size_t examples) {
  std::vector<example_group> groups(examples);
  for (std::size_t i = 0; i < examples; ++i) groups[i] = {i, 1};
  return groups;
}

/// The first of a shuffled order, none of which has more than `most`.
std::vector<std::size_t> draw(const std::vector<example_group>& groups, std::size_t wanted, std::size_t most,
                              std::uint64_t seed) {
  std::vector<std::size_t> order(groups.size()), drawn;
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, seed, stream);
  for (const std::size_t group : order) {
    if (drawn.size() >= wanted) break;
    const auto [first, count] = groups[group];
    if (count > most) continue;
    for (std::size_t i = first; i < first + count; ++i) drawn.push_back(i);
  }
  return drawn;
}

}  // namespace

held_out_examples draw_held_out(const training_data& data, double share, std::uint64_t seed) {
  const std::size_t examples = data.examples.size();
  if (share <= 0 || examples < 2) return {};
  const auto rounded = to_size(std::llround(share * static_cast<double>(examples)));
  const std::size_t wanted = std::clamp<std::size_t>(rounded, 1, examples - 1);
  const std::size_t most = std::max(wanted, examples / 4);
  const std::vector<example_group> groups = groups_of(data);
  std::vector<std::size_t> drawn = draw(groups, wanted, most, seed);
  bool is_by_groups = groups.size() < examples;
  if (drawn.empty() || drawn.size() == examples) {
    drawn = draw(one_by_one(examples), wanted, 1, seed);
    is_by_groups = false;
  }
  std::sort(drawn.begin(), drawn.end());
  fnv_hash print;
  for (const std::size_t example : drawn) print.add(example);
  return {.examples = std::move(drawn), .fingerprint = is_by_groups ? print.value() : 0};
}

}  // namespace troupe
