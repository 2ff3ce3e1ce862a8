#pragma once
#include <memory>

#include "base/device_id.hpp"
#include "cluster/cluster_ids.hpp"
#include "model/arch/loaded_model.hpp"

namespace troupe {

/// Layers of this model that this machine takes a few rows through in a second, with so many threads or this device;
/// only compared between workers. Measured in some tens of milliseconds, once: all workers of a machine go by the first
/// one's figure, which is kept in the cache folder. Rounded to steps of a tenth, so that two machines of a kind are
/// alike.
double worker_speed(const std::shared_ptr<const loaded_model>& model, model_id fingerprint, int threads,
                    device_id device);

}  // namespace troupe
