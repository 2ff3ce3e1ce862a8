#pragma once
#include <vector>

#include "model/ops/compute.hpp"
#include "model/ops/cuda/device.hpp"
#include "model/train/parameters/parameter_set.hpp"

namespace troupe {

/// What is trained, on a device: values go there when they have changed, gradients come back. The set outlives it.
class device_parameters {
 public:
  explicit device_parameters(const parameter_set& host);

  // Nothing that was asked for before may still run when a pass begins.
  void begin_pass();
  /// The host's [..., end) from where the last call since begin_pass ended, if anything has changed since the pass
  /// before: what comes next on the stream has it. `end` counts among the gradients.
  void send_values(const compute& with, const float* end, const cuda::stream& on);
  void clear_gradients(const cuda::stream& on);
  /// Of the host's [first, ...) up to where the last call since clear_gradients began: they are made from the end to
  /// the beginning. Copied beside what comes next on the stream.
  void fetch_gradients(const float* first, const cuda::stream& on);
  /// All that was fetched, in that order, each as soon as it is there.
  void set_gradients_of_host(const compute& with) const;
  void wait() const { copies_.wait(); }

  // The device's place of one of the host's.
  const float* value(const float* host) const { return values_.data() + (host - host_.values().data()); }
  float* gradient(const float* host) const { return gradients_.data() + (host - host_.gradients().data()); }

 private:
  std::size_t bytes() const { return host_.values().size_bytes(); }
  /// What one call fetched.
  struct fetched_part {
    std::size_t first = 0, count = 0;
    cuda::event made, there;
  };

  const parameter_set& host_;
  cuda::pinned_buffer<float> sent_, fetched_;
  cuda::device_buffer<float> values_, gradients_;
  cuda::stream copies_;
  std::vector<fetched_part> parts_;  ///< the first parts_in_use_ of this pass; the others' events will be used again
  std::size_t parts_in_use_ = 0, next_end_ = 0;
  cuda::event sent_there_;
  std::size_t next_sent_ = 0;
  bool has_sent_ = false;
};

}  // namespace troupe
