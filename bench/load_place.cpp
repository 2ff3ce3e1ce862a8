#include "bench/load_place.hpp"

#include "bench/limits.hpp"
#include "model/arch/gpu.hpp"
#include "model/arch/loaded_model.hpp"

namespace troupe::bench {

scheme scheme_of(const load_place& place) {
  return usual_scheme(*place.model);
}

machine_limits limits_of(const load_place& place) {
  const scheme kind = scheme_of(place);
  if (place.device.is_cpu())
    return {read_limit(place.with, place.model->file.bytes()), product_limit(place.with, kind)};
  const gpu_limits gpu = measure_gpu(place.device.gpu);
  return {gpu.bytes, is_integer(kind) ? gpu.int8 : gpu.bf16};
}

}  // namespace troupe::bench
