#pragma once
#include "model/ops/compute.hpp"
#include "model/ops/cuda/device.hpp"
#include "model/train/parameter_set.hpp"

namespace troupe {

/// What is trained, on a device: values go there when they have changed, gradients come back. The set outlives it.
class device_parameters {
 public:
  explicit device_parameters(const parameter_set& host);

  // Nothing that was asked for before may still run.
  void send_values(const compute& with, const cuda::stream& on);
  void clear_gradients(const cuda::stream& on) const;
  void fetch_gradients(const cuda::stream& on) const;
  /// Of what was fetched, once that has ended.
  void add_gradients_to_host(const compute& with) const;

  // The device's place of one of the host's.
  const float* value(const float* host) const { return values_.data() + (host - host_.values().data()); }
  float* gradient(const float* host) const { return gradients_.data() + (host - host_.gradients().data()); }

 private:
  std::size_t bytes() const { return host_.values().size_bytes(); }

  const parameter_set& host_;
  cuda::pinned_buffer<float> sent_, fetched_;
  cuda::device_buffer<float> values_, gradients_;
  bool has_sent_ = false;
};

}  // namespace troupe
