#pragma once
#include "model/ops/cuda/device.hpp"
#include "model/ops/cuda/train_ops.hpp"
#include "model/train/data/training_rows.hpp"

namespace troupe {

/// The rows of one pass on a device: what kernels must know of them, in one piece of memory that goes there in one
/// copy.
class device_rows {
 public:
  explicit device_rows(std::int64_t most_rows);

  /// The copy before must have ended.
  void fill(const training_rows& batch, const cuda::stream& on);

  int count() const { return count_; }
  int segment_count() const { return segment_count_; }
  int longest() const { return longest_; }  ///< rows of a segment
  int target_count() const { return target_count_; }
  // On the device.
  const std::int32_t* tokens() const { return part(0); }
  const std::int32_t* positions() const { return part(1); }  ///< within each segment
  const std::int32_t* picked() const { return part(2); }     ///< the rows that have a target
  const std::int32_t* targets() const { return part(3); }    ///< theirs
  const cuda::segment* segments() const { return reinterpret_cast<const cuda::segment*>(part(4)); }

 private:
  static constexpr std::int64_t parts = 6;  // a segment is two numbers
  const std::int32_t* part(std::int64_t index) const { return device_.data() + index * most_rows_; }

  std::int64_t most_rows_;
  cuda::pinned_buffer<std::int32_t> host_;
  cuda::device_buffer<std::int32_t> device_;
  int count_ = 0, segment_count_ = 0, longest_ = 0, target_count_ = 0;
};

}  // namespace troupe
