#include "bench/load_place.hpp"

#include "bench/limits.hpp"
#include "model/arch/gpu.hpp"

namespace troupe::bench {

bool multiplies_integers(const load_place& place) {
  return is_integer(place.model->layers.front().q.w.kind);
}

machine_limits limits_of(const load_place& place) {
  const bool integer = multiplies_integers(place);
  if (place.device.is_cpu())
    return {read_limit(place.with, place.model->file.bytes()),
            integer ? int8_limit(place.with) : fp32_limit(place.with)};
  const gpu_limits gpu = measure_gpu(place.device.gpu);
  return {gpu.bytes, integer ? gpu.int8 : gpu.bf16};
}

}  // namespace troupe::bench
