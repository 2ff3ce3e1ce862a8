#include "model/arch/state_storage.hpp"

#include "base/to_size.hpp"

namespace troupe {

state_storage::state_storage(const model_config& config, std::int64_t first_layer, std::int64_t layers,
                             std::int64_t slots) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < layers; ++i) {
    places_.push_back(total);
    floats_.push_back(config.state_floats(first_layer + i));
    total += floats_.back() * slots;
  }
  memory_ = aligned_buffer<float>(to_size(total));
}

}  // namespace troupe
