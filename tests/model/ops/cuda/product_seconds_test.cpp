// What `troupe bench ops` measures of products.
#include "model/ops/cuda/limits.hpp"
#include "tests/model/ops/cuda/on_device.hpp"

namespace troupe::cuda {
namespace {

class cuda_product_seconds : public device_test {};

TEST_F(cuda_product_seconds, are_measured_for_few_rows_and_many) {
  const std::int64_t outs[] = {40, 16};
  const stream on;
  for (const scheme kind : {scheme::u8, scheme::bf16, scheme::f32})
    for (const int rows : {1, 20}) EXPECT_GT(product_seconds(on, kind, outs, 70, rows), 0) << name_of(kind) << rows;
}

}  // namespace
}  // namespace troupe::cuda
