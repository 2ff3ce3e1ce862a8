#pragma once
#include <cstddef>
#include <functional>
#include <span>

namespace troupe {

/// The members who train one thing together, as one of them sees it. All make the same calls in the same order; each
/// call returns once all have made it.
struct training_group {
  int index = 0, count = 1;
  /// Everyone has ((first's + second's) + …) afterwards.
  std::function<void(std::span<float>)> all_reduce_sum = {};
  /// In `count` equal parts, in the order of members: each brings its own, everyone has all of them afterwards.
  std::function<void(std::span<std::byte>)> all_gather = {};
  /// Everyone has the first one's afterwards.
  std::function<void(std::span<std::byte>)> broadcast = {};
};

}  // namespace troupe
