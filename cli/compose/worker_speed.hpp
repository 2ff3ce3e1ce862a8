#pragma once
#include <memory>

#include "base/device_id.hpp"
#include "base/model_ids.hpp"
#include "model/arch/loaded_model.hpp"

namespace troupe {

/// How many layers of this model a few rows pass in a second on this machine, with this many threads or on this device.
/// Only used to compare workers. Measured once, in some tens of milliseconds: all workers of a machine use the first
/// one's figure, which is kept in the cache folder. Rounded to steps of a tenth, so that two machines of a kind are
/// alike.
double worker_speed(const std::shared_ptr<const loaded_model>& model, model_id fingerprint, int threads,
                    device_id device);

}  // namespace troupe
