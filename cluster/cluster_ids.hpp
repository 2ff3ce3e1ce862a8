#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <tuple>

#include "base/strong_id.hpp"

namespace troupe {

/// One membership of a process under a node's name: a random number that is drawn when the process starts, and again
/// whenever the node is told that it is fenced or unknown. Never 0.
using incarnation_id = strong_id<struct incarnation_tag, std::uint64_t>;

/// Counts the lives of all replicas, so that messages of an earlier life can be dropped. It only goes up, also when the
/// head is restarted (journal::begin_reign).
using epoch_id = strong_id<struct epoch_tag, std::uint64_t>;

/// All stages of one whole model.
using replica_id = strong_id<struct replica_tag, std::uint32_t>;

/// A worker's place in a replica.
struct seat {
  std::uint32_t stage = 0, rank = 0;
  auto operator<=>(const seat&) const = default;
  auto fields() { return std::tie(stage, rank); }
};

/// Consecutive layers, both ends included.
struct layer_range {
  int first = 0, last = 0;

  int count() const { return last - first + 1; }
  friend constexpr auto operator<=>(const layer_range&, const layer_range&) = default;
};

/// "0-10"
inline std::string to_text(const layer_range& layers) {
  return std::to_string(layers.first) + "-" + std::to_string(layers.last);
}

}  // namespace troupe
