// Promise 1 where a pass has so many rows that a library multiplies them, or that gate, up and activation are made at
// once.
#include "bench/random/random_adapter.hpp"
#include "bench/random/random_model.hpp"
#include "model/ops/cuda/library_products.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/model/ops/cuda/older_device.hpp"

namespace troupe {
namespace {

constexpr int rows_each = 16, sequences_of_a_pass = cuda::least_library_rows / rows_each;

/// Logits of each sequence's last row, where a pass has so many sequences.
std::vector<float> last_logits(const std::shared_ptr<const loaded_model>& model, int at_once, std::string& remark) {
  thread_pool pool(1);
  const auto shard = make_decoder(
      model,
      {.max_rows = at_once * rows_each, .blocks = sequences_of_a_pass, .context = rows_each, .device = first_gpu},
      {pool, kernels()});
  remark = shard->remark();
  const auto tokens = random_tokens(sequences_of_a_pass * rows_each, model->config.vocab_size, 3);
  std::vector<std::int32_t> blocks(sequences_of_a_pass);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::vector<float> all;
  for (int first = 0; first < sequences_of_a_pass; first += at_once) {
    std::vector<pass_sequence> sequences;
    std::vector<int> last;
    for (int s = 0; s < at_once; ++s) {
      sequences.push_back({s * rows_each, rows_each, 0, blocks.data() + first + s});
      last.push_back((s + 1) * rows_each - 1);
    }
    const pass batch{sequences, at_once * rows_each};
    shard->embed(batch, std::span(tokens).subspan(std::size_t(first * rows_each), std::size_t(batch.rows)), nullptr);
    shard->run(batch, nullptr);
    const float* logits = shard->logits(nullptr, {last});
    all.insert(all.end(), logits, logits + at_once * shard->logit_stride());
  }
  return all;
}

/// What is said of what multiplies many rows, after their logits were compared with those of half as many at a time.
std::string remark_of_many_rows() {
  const auto model = load_for_test(golden / "qwen2", scheme::u8);
  std::string of_many, of_few;
  const auto many = last_logits(model, sequences_of_a_pass, of_many);
  EXPECT_TRUE(same_bits(many, last_logits(model, sequences_of_a_pass / 2, of_few)));
  EXPECT_EQ(of_few, "");
  return of_many;
}

TEST(many_rows_on_a_gpu, get_the_logits_of_few_and_it_is_said_what_multiplies_them) {
  skip_without_gpu();
  if (testing::Test::IsSkipped()) return;
  if (cuda::is_hopper()) {
    EXPECT_EQ(remark_of_many_rows(), "") << "our own kernels multiply them";
  }
  const cuda::older_device one;
  if (cuda::is_hopper()) return;
  const std::string remark = remark_of_many_rows();
  EXPECT_NE(remark.find("passes of 1024 rows and more multiply u8 weights with"), std::string::npos) << remark;
}

TEST(many_rows_on_a_gpu, of_gate_and_up_that_are_made_at_once_are_those_of_few) {
  skip_without_gpu();
  if (testing::Test::IsSkipped()) return;
  const test::temp_folder folder;
  bench::write_random_model("tiny", folder.path());  // its mlp has whole tiles
  for (const scheme quant : {scheme::bf16, scheme::u8}) {
    const auto model = load_for_test(folder.path(), quant);
    const auto tokens = random_tokens(260, model->config.vocab_size, 5);
    const auto expect_the_same = [&](const lora_adapter* adapter) {
      const auto in_chunks_of = [&](int chunk) {
        return logits_of(model, tokens, {.adapter = adapter, .chunk = chunk, .kv = kv_kind::f16, .device = first_gpu});
      };
      EXPECT_TRUE(same_bits(in_chunks_of(260), in_chunks_of(130))) << name_of(quant);
    };
    expect_the_same(nullptr);
    if (quant == scheme::bf16) expect_the_same(bench::random_adapter(*model, 4, 1).get());
  }
}

}  // namespace
}  // namespace troupe
