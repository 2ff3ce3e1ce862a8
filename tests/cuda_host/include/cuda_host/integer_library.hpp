// In the place of cuBLASLt: plain loops, which run when somebody waits for the stream.
#pragma once
#include <cuda_runtime.h>

#include "model/ops/cuda/integer_library.hpp"

namespace cuda_host {

class plain_loops final : public troupe::cuda::integer_library {
 public:
  std::string name() const override { return "plain loops"; }
  bool multiply(const troupe::cuda::stream& on, const troupe::cuda::integer_product& p) override {
    put(on.get(), [p] {
      for (std::int64_t row = 0; row < p.rows; ++row)
        for (std::int64_t out = 0; out < p.outs; ++out) {
          std::int32_t sum = 0;
          for (std::int64_t i = 0; i < p.ins; ++i)
            sum += std::int32_t{p.weights[out * p.ins + i]} * p.inputs[row * p.ins + i];
          p.sums[row * p.outs + out] = sum;
        }
    });
    return true;
  }
};

}  // namespace cuda_host
