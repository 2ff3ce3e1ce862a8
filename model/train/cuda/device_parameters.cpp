#include "model/train/cuda/device_parameters.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

constexpr std::int64_t piece = 1 << 16;  // floats that a thread of the host takes at a time

}  // namespace

device_parameters::device_parameters(const parameter_set& host)
    : host_(host),
      sent_(host.values().size()),
      fetched_(host.values().size()),
      values_(host.values().size()),
      gradients_(host.values().size()) {}

void device_parameters::send_values(const compute& with, const cuda::stream& on) {
  if (has_sent_ && std::memcmp(sent_.data(), host_.values().data(), bytes()) == 0) return;
  with.pool.run_pieces(static_cast<std::int64_t>(sent_.size()), piece,
                       [&](std::int64_t first, std::int64_t count, int) {
                         std::copy_n(host_.values().data() + first, count, sent_.data() + first);
                       });
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
  with.pool.run_pieces(static_cast<std::int64_t>(fetched_.size()), piece,
                       [&](std::int64_t first, std::int64_t count, int) {
                         with.kernels.add(fetched_.data() + first, count, host_.gradients().data() + first);
                       });
}

}  // namespace troupe
