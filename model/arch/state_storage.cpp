#include "model/arch/state_storage.hpp"

#include <algorithm>

#include "base/to_size.hpp"

namespace troupe {

state_storage::state_storage(const model_config& config, std::int64_t first_layer, std::int64_t layers,
                             std::int64_t slots)
    : first_layer_(first_layer) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    places_.push_back(total);
    floats_.push_back(config.state_floats(first_layer + i));
    total += floats_.back() * slots;
  }
  memory_ = aligned_buffer<float>(to_size(total));
}

void state_storage::copy(std::int64_t from, std::int64_t to) {
  if (from == to) return;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    float* slots = memory_.data() + places_[i];
    std::copy_n(slots + from * floats_[i], floats_[i], slots + to * floats_[i]);
  }
}

}  // namespace troupe
