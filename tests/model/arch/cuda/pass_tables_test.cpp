// Tables of passes with few sequences and a very long context.
#include "model/arch/cuda/pass_tables.hpp"

#include <vector>

#include "base/blocks.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"

namespace troupe {
namespace {

TEST(pass_tables, have_room_for_the_sequences_of_a_pass_and_not_for_one_of_each_row) {
  skip_without_gpu();
  if (testing::Test::IsSkipped()) return;
  cuda::use_device(first_gpu.gpu);
  constexpr int most_rows = 2048, most_sequences = 3;
  constexpr std::int64_t context = 1 << 24;  // 4 MiB of blocks each; 8 GiB, if each row had so much
  pass_tables tables(most_rows, most_sequences, context, 1);
  const std::vector<std::int32_t> blocks(blocks_for(context), 7);
  std::vector<pass_sequence> sequences;
  for (int s = 0; s < most_sequences; ++s) sequences.push_back({s, 1, context - 1, blocks.data(), nullptr});
  model_config config;
  config.heads = config.kv_heads = 1;
  const device_adapters none(0, 1, output_cuts({}, config));
  const pass_shape shape = tables.fill({sequences, most_sequences}, {}, none);
  EXPECT_EQ(shape.sequences, 4) << "as for all passes of three or four";
  EXPECT_EQ(shape.blocks, 1 << 20);
  const cuda::stream on;
  tables.upload(shape, on);
  on.wait();
}

}  // namespace
}  // namespace troupe
