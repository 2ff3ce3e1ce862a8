#include "bench/model_work.hpp"

#include <gtest/gtest.h>

#include "tests/base/places.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe::bench {
namespace {

/// One of its three layers has keys and values, of 2 heads of 16; each of the others a state of 2,624 floats.
TEST(model_work, is_to_read_keys_and_values_and_to_change_states) {
  const model_work work = work_of(*load_for_test(test::golden / "qwen3.5", scheme::u8), kv_kind::f32);
  EXPECT_EQ(work.kv_bytes(1), 2 * 2 * 16 * 4);
  EXPECT_EQ(work.state_bytes, 2 * 2 * 2624 * 4) << "read and written";
  const machine_limits slow_to_read{.read = 1, .products = 1e30};
  const double weights = least_seconds(work, slow_to_read, 8, 0, 0);
  EXPECT_EQ(least_seconds(work, slow_to_read, 8, 3, 10) - weights, 10 + 3 * work.state_bytes);
  EXPECT_EQ(work_of(*load_for_test(test::golden / "llama", scheme::u8), kv_kind::f32).state_bytes, 0);
}

/// Its first layer sees 16 positions, its second one all.
TEST(model_work, is_to_read_no_keys_behind_a_sliding_window) {
  const model_work work = work_of(*load_for_test(test::golden / "gemma2", scheme::u8), kv_kind::f32);
  constexpr double position = 2 * 2 * 16 * 4;
  EXPECT_EQ(work.kv_bytes(10), (10 + 10) * position);
  EXPECT_EQ(work.kv_bytes(100), (16 + 100) * position);
}

}  // namespace
}  // namespace troupe::bench
