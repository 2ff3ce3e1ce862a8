#include <gmock/gmock.h>

#include "base/error.hpp"
#include "model/ops/isa.hpp"
#include "model/train/cpu_train_pass.hpp"
#include "tests/model/train/train_fixture.hpp"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Longrope turns by other angles where a server's context is short, and rows say nothing of that.
TEST(train_pass, heads_turn_as_in_the_whole_context_however_short_the_rows) {
  thread_pool pool(1);
  const trained_model model = frozen(load_golden("phi3", pool));
  const training_rows rows = some_rows(model.config, {16});
  ASSERT_LE(rows.rows(), model.config.rope.original_context);
  const auto loss = [&](std::int64_t most_positions) {
    return cpu_train_pass(model, {pool, kernels()}, {.most_rows = 64, .most_positions = most_positions})
        .measure(rows)
        .loss;
  };
  EXPECT_EQ(loss(16), loss(64));
}

TEST(train_pass, what_memory_cannot_hold_is_refused) {
  thread_pool pool(1);
  const trained_model model = frozen(load_golden("llama", pool));
  const parameter_set none;
  EXPECT_THAT(
      [&] {
        make_train_pass(model, none, {pool, kernels()}, {.most_rows = std::int64_t{1} << 40});
      },
      ThrowsMessage<input_error>(HasSubstr("MiB are free: lower --length or --batch")));
}

}  // namespace
}  // namespace troupe
