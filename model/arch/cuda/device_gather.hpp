#pragma once
#include "model/arch/tensor_split.hpp"
#include "model/ops/cuda/device.hpp"
#include "model/ops/rows.hpp"

namespace troupe {

/// Puts rows together that lie on a device. The parts that ranks exchange are put side by side: on the device, if the
/// ranks take them from there, otherwise in pinned memory.
class device_gather {
 public:
  /// `most_floats`: of the largest rows that it puts together.
  device_gather(tensor_split split, std::int64_t most_floats);

  /// Of some rows this rank has made its columns. The host waits until what was put on the stream is done; the others'
  /// columns then come by the stream.
  void operator()(const cuda::stream& on, float_rows rows, int count, const column_cut& cut,
                  int root = tensor_split::everyone);

 private:
  tensor_split split_;
  cuda::device_buffer<float> on_device_;
  cuda::pinned_buffer<float> on_host_;  ///< one of both is there
  float* parts_ = nullptr;
  std::vector<std::size_t> ends_;
};

}  // namespace troupe
