#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "model/train/data/training_data.hpp"
#include "model/train/data/training_rows.hpp"

namespace troupe {

/// Which examples lie in which row, and which rows a step takes. Decided once by the seed; a run that goes on after a
/// pause finds its place by the number of the step alone.
class batch_plan {
 public:
  struct options {
    std::int64_t row_length = 512;
    std::int64_t batch_rows = 4;    ///< packed rows of one pass
    std::int64_t accumulation = 1;  ///< passes of one step
    std::uint64_t seed = 0;
  };
  /// Packs examples (indices into `data`) into rows.
  batch_plan(const training_data& data, std::span<const std::size_t> examples, const options& chosen);

  std::int64_t packed_rows() const { return static_cast<std::int64_t>(rows_.size()); }
  std::int64_t most_tokens() const;  ///< of one pass: a batch may ask for more rows than there are
  std::int64_t steps_per_epoch() const;
  /// The micro-batches of a step, counted over all epochs; each epoch has an order of its own.
  std::vector<training_rows> step(std::int64_t number) const;
  /// How many tokens all steps before this one have.
  std::int64_t tokens_before(std::int64_t step) const;
  /// All rows once, in the order they were packed.
  std::vector<training_rows> all() const;

 private:
  std::vector<std::size_t> order_of(std::int64_t epoch) const;
  std::vector<training_rows> batches_of(std::span<const std::size_t> rows) const;
  training_rows batch_of(std::span<const std::size_t> rows) const;

  const training_data& data_;
  options options_;
  std::vector<std::vector<std::size_t>> rows_;  // examples of each
};

/// Shuffles by (seed, stream) alone.
void shuffle(std::span<std::size_t> order, std::uint64_t seed, std::uint64_t stream);

}  // namespace troupe
