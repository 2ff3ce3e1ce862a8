#include <gmock/gmock.h>

#include <fstream>

#include <malloc.h>
#include <unistd.h>

#include "base/error.hpp"
#include "model/ops/isa.hpp"
#include "model/train/passes/cpu_train_pass.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

using ::testing::AllOf;
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

/// Bytes of this process in memory.
std::int64_t resident() {
  std::int64_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

/// What the second pass takes more than the first, and what it says so.
void expect_known(const trained_model& model, thread_pool& pool, const train_pass::options& less,
                  const train_pass::options& more, const std::string& what) {
  const auto taken_by = [&](const train_pass::options& options) {
    ::malloc_trim(0);
    const std::int64_t before = resident();
    const cpu_train_pass pass(model, {pool, kernels()}, options);
    return resident() - before;
  };
  const auto taken = static_cast<double>(taken_by(more) - taken_by(less));
  const auto said =
      static_cast<double>(pass_bytes(model, more, pool.threads()) - pass_bytes(model, less, pool.threads()));
  EXPECT_GT(said / taken, 0.65) << what << ": " << taken;  // memory that was freed before may be used again
  EXPECT_LT(said / taken, 1.5) << what << ": " << taken;
}

TEST(train_pass, knows_what_more_rows_and_positions_take) {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 18);  // each buffer has pages of its own, whatever was freed before
  thread_pool pool(2);
  for (const char* name : {"llama", "gpt2", "gemma3", "olmo2", "cohere", "qwen2-moe", "qwen3.5", "qwen3-next", "lfm2",
                           "gemma4", "gemma4-small", "gemma4-moe"})
    for (const bool keep : {true, false}) {
      trained_model model = frozen(load_golden(name, pool, scheme::u8));
      const lora_parameters lora(model, {.factors = {.rank = 4}}, 1);
      const auto options = [&](std::int64_t rows, std::int64_t positions) {
        return train_pass::options{.most_rows = rows, .most_positions = positions, .keep_activations = keep};
      };
      expect_known(model, pool, options(2048, 64), options(8192, 64), fmt::format("{} {} rows", name, keep));
      expect_known(model, pool, options(64, 64), options(64, 16384), fmt::format("{} {} positions", name, keep));
    }
}

TEST(train_pass, what_memory_cannot_hold_is_refused) {
  thread_pool pool(1);
  const trained_model model = frozen(load_golden("llama", pool));
  const parameter_set none;
  EXPECT_THAT(
      [&] {
        make_train_pass(model, none, {pool, kernels()}, {.most_rows = std::int64_t{1} << 40});
      },
      ThrowsMessage<input_error>(AllOf(HasSubstr("of them for a pass of 1099511627776 tokens"),
                                       HasSubstr("MiB are free: lower --length or --batch"))));
}

/// Whatever the pass: lower rows would not help.
TEST(train_pass, what_a_run_takes_beside_its_passes_counts_too) {
  thread_pool pool(1);
  trained_model model = frozen(load_golden("llama", pool));
  const parameter_set none;
  const auto refusing = [&](std::int64_t rows, const std::string& remedy) {
    EXPECT_THAT(
        [&] {
          make_train_pass(model, none, {pool, kernels()}, {.most_rows = rows, .bytes_beside = std::int64_t{1} << 60});
        },
        ThrowsMessage<full_error>(
            AllOf(HasSubstr("MiB, 1099511627776 of them for the optimizer and copies of what is trained, and "),
                  HasSubstr("MiB are free: " + remedy))));
  };
  refusing(64, "lower --rank, or name fewer --targets");
  refusing(std::int64_t{1} << 40, "lower --rank");
  model.base = nullptr;
  refusing(64, "train an adapter instead of --full");
}

}  // namespace
}  // namespace troupe
