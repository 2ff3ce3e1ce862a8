#include "model/train/cuda/device_rows.hpp"

#include <algorithm>

#include "base/to_size.hpp"

namespace troupe {

static_assert(sizeof(cuda::segment) == 2 * sizeof(std::int32_t));

device_rows::device_rows(std::int64_t most_rows)
    : most_rows_(most_rows), host_(to_size(most_rows * parts)), device_(to_size(most_rows * parts)) {}

void device_rows::fill(const training_rows& batch, const cuda::stream& on) {
  std::int32_t *tokens = host_.data(), *positions = tokens + most_rows_, *picked = positions + most_rows_,
               *targets = picked + most_rows_, *segments = targets + most_rows_;
  count_ = static_cast<int>(batch.rows());
  segment_count_ = static_cast<int>(batch.segments.size());
  longest_ = target_count_ = 0;
  std::copy(batch.tokens.begin(), batch.tokens.end(), tokens);
  for (const training_rows::segment& s : batch.segments) {
    *segments++ = static_cast<std::int32_t>(s.first);
    *segments++ = static_cast<std::int32_t>(s.rows);
    longest_ = std::max(longest_, static_cast<int>(s.rows));
    for (std::int64_t i = 0; i < s.rows; ++i) positions[s.first + i] = static_cast<std::int32_t>(i);
  }
  for (int row = 0; row < count_; ++row) {
    const std::int32_t target = batch.targets[to_size(row)];
    if (target < 0) continue;
    picked[target_count_] = row;
    targets[target_count_++] = target;
  }
  cuda::copy(device_.data(), host_.data(), host_.size(), on);
}

}  // namespace troupe
