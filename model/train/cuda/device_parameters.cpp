#include "model/train/cuda/device_parameters.hpp"

#include <cstring>

namespace troupe {

device_parameters::device_parameters(const parameter_set& host)
    : host_(host),
      sent_(host.values().size()),
      fetched_(host.values().size()),
      values_(host.values().size()),
      gradients_(host.values().size()) {}

void device_parameters::send_values(const cuda::stream& on) {
  if (has_sent_ && std::memcmp(sent_.data(), host_.values().data(), bytes()) == 0) return;
  std::memcpy(sent_.data(), host_.values().data(), bytes());
  cuda::copy(values_.data(), sent_.data(), sent_.size(), on);
  has_sent_ = true;
}

void device_parameters::clear_gradients(const cuda::stream& on) const {
  cuda::clear(gradients_.data(), bytes(), on);
}

void device_parameters::fetch_gradients(const cuda::stream& on) const {
  cuda::copy(fetched_.data(), gradients_.data(), fetched_.size(), on);
}

void device_parameters::add_gradients_to_host(const compute& with) const {
  with.kernels.add(fetched_.data(), static_cast<std::int64_t>(fetched_.size()), host_.gradients().data());
}

}  // namespace troupe
