#pragma once
#include <algorithm>
#include <memory>

#include "base/device_id.hpp"
#include "bench/model_work.hpp"

namespace troupe::bench {

/// What a load is run on.
struct load_place {
  std::shared_ptr<const loaded_model> model;
  const compute& with;
  model_work work;
  machine_limits limits;
  kv_kind kv = kv_kind::f16;
  device_id device = {};
};

/// How most of its weights are stored.
scheme scheme_of(const load_place& place);

/// What the place allows now.
machine_limits limits_of(const load_place& place);

/// What the processors allow while something is measured. Others may use the same machine, and what they leave changes
/// from second to second: the better of just before and just after.
template <class Work>
machine_limits limits_around(const load_place& place, Work work) {
  if (!place.device.is_cpu()) return work(), place.limits;
  const machine_limits before = limits_of(place);
  work();
  const machine_limits after = limits_of(place);
  return {std::max(before.read, after.read), std::max(before.products, after.products)};
}

}  // namespace troupe::bench
