// Promise 1 through the engine, where a GPU computes: requests in company, in small steps, with too few blocks.
#include "model/engine/engine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

using answers = std::vector<std::vector<token_id>>;

engine_options small_engine(std::int32_t blocks, std::int32_t batch_tokens) {
  engine_options options;
  options.scheduler.blocks = blocks;
  options.scheduler.context = 96;
  options.scheduler.max_batch_tokens = batch_tokens;
  options.scheduler.max_sequences = std::min(batch_tokens, 16);
  options.device = first_gpu;
  return options;
}

class engine_on_gpu : public testing::Test {
 protected:
  void SetUp() override { skip_without_gpu(); }

  std::vector<engine_request> requests(int count) const {
    std::vector<engine_request> all;
    for (int i = 0; i < count; ++i) {
      engine_request request;
      if (i % 2) request.sequence.prompt = random_tokens(36, model_->config.vocab_size, 1);
      const auto own = random_tokens(3 + 3 * i, model_->config.vocab_size, 10 + static_cast<unsigned>(i));
      request.sequence.prompt.insert(request.sequence.prompt.end(), own.begin(), own.end());
      request.sequence.max_tokens = request.sampling.max_tokens = 18;
      request.sequence.adapter = i % 3 == 2 ? adapter_version(7) : no_adapter;
      request.sampling.temperature = i % 2 ? 0.0 : 0.9;
      request.sampling.seed = static_cast<std::uint64_t>(i);
      all.push_back(request);
    }
    return all;
  }

  answers run(const std::vector<engine_request>& requests, engine_options options,
              batch_scheduler::statistics* statistics = nullptr) {
    return run(requests, std::move(options), pool_, statistics);
  }
  answers run(const std::vector<engine_request>& requests, engine_options options, thread_pool& pool,
              batch_scheduler::statistics* statistics = nullptr) {
    engine serving(model_, std::move(options), {pool, kernels()});
    serving.add_adapter(adapter_version(7), adapter_);
    std::map<sequence_id, std::size_t> who;
    answers all(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) who[serving.submit(requests[i])->first] = i;
    std::size_t left = requests.size();
    while (serving.step(
        {}, [&](const engine_token& t) { all[who.at(t.sequence)].push_back(t.token); },
        [&](const ended_sequence&) { --left; })) {
    }
    EXPECT_EQ(left, 0u);
    if (statistics) *statistics = serving.scheduler().stats();
    return all;
  }

  answers run_alone(const std::vector<engine_request>& requests) {
    answers all;
    for (const auto& request : requests) all.push_back(run({request}, small_engine(8, 64)).front());
    return all;
  }

  std::shared_ptr<const loaded_model> model_ = load_for_test(golden / "llama", scheme::u8);
  std::shared_ptr<const lora_adapter> adapter_ =
      std::make_shared<lora_adapter>(read_adapter(golden / "llama" / "adapter", model_->config), model_->config.layers);
  thread_pool pool_{1};
};

TEST_F(engine_on_gpu, gives_the_same_alone_and_in_any_company) {
  const auto all = requests(4);
  const answers alone = run_alone(all);
  batch_scheduler::statistics statistics;
  EXPECT_EQ(run(all, small_engine(60, 64), &statistics), alone) << "in one batch";
  EXPECT_EQ(run(all, small_engine(60, 16)), alone) << "in small steps";
  EXPECT_EQ(run(all, small_engine(5, 32), &statistics), alone) << "with few blocks";
  EXPECT_GT(statistics.preemptions, 0u) << "there should have been too few blocks";
}

/// With logprobs the logits come to the host, which then chooses.
TEST_F(engine_on_gpu, chooses_greedy_tokens_as_the_host_does) {
  auto all = requests(8);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].sampling.temperature = i % 4 == 3 ? 0.9 : 0.0;
    all[i].sampling.frequency_penalty = i % 4 == 2 ? 0.5 : 0.0;
  }
  auto on_host = all;
  for (auto& each : on_host) each.sampling.logprobs = 0;
  thread_pool several{3};
  for (const int guesses : {0, 3}) {
    auto options = small_engine(120, 64);
    options.lookup_tokens = guesses;
    EXPECT_EQ(run(all, options, several), run(on_host, options, pool_)) << guesses << " guesses";
  }
}

TEST_F(engine_on_gpu, gives_logits_of_some_rows_and_the_largest_of_others) {
  constexpr int count = 300;  // more than are made at a time
  const auto shard = make_decoder(model_, {.max_rows = count, .blocks = 20, .device = first_gpu}, {pool_, kernels()});
  const auto tokens = random_tokens(count, model_->config.vocab_size, 3);
  std::vector<std::int32_t> table(20);
  std::iota(table.begin(), table.end(), 0);
  const pass_sequence sequence{0, count, 0, table.data(), nullptr};
  const pass batch{std::span(&sequence, 1), count};
  shard->embed(batch, tokens, nullptr);
  shard->run(batch, nullptr);
  const auto vocab = static_cast<std::size_t>(model_->config.vocab_size);
  const auto read = [&](const std::vector<int>& rows, const std::vector<int>& largest_of,
                        std::vector<std::int32_t>& largest) {
    largest.resize(largest_of.size());
    const float* logits = shard->logits(nullptr, {rows, largest_of, largest.data()});
    std::vector<std::vector<float>> made;
    for (std::size_t i = 0; i < rows.size(); ++i, logits += shard->logit_stride())
      made.emplace_back(logits, logits + vocab);
    return made;
  };
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::int32_t> largest;
  const auto logits = read(all, {}, largest);
  for (const int found : {1, 150, 290, count}) {
    const auto some = read({all.begin() + found, all.end()}, {all.begin(), all.begin() + found}, largest);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), logits.begin() + found, logits.end())) << found;
    for (std::size_t row = 0; row < largest.size(); ++row)
      EXPECT_EQ(largest[row], std::max_element(logits[row].begin(), logits[row].end()) - logits[row].begin()) << row;
  }
}

TEST_F(engine_on_gpu, gives_the_same_from_two_stages) {
  const auto all = requests(3);
  auto split = small_engine(60, 64);
  split.stage_layers = {1, model_->config.layers - 1};
  EXPECT_EQ(run(all, split), run(all, small_engine(60, 64)));
}

/// Passes of one token for each sequence are filled up with rows that visit no expert.
TEST_F(engine_on_gpu, gives_the_same_where_rows_go_through_experts_of_their_own) {
  model_ = load_for_test(golden / "qwen3-moe", scheme::u8);
  adapter_ = std::make_shared<lora_adapter>(read_adapter(golden / "qwen3-moe" / "adapter", model_->config),
                                            model_->config.layers);
  const auto all = requests(3);
  const auto alone = run_alone(all);
  EXPECT_EQ(run(all, small_engine(60, 64)), alone) << "in one batch";
  EXPECT_EQ(run(all, small_engine(5, 32)), alone) << "with few blocks";
  auto split = small_engine(60, 16);
  split.stage_layers = {1, model_->config.layers - 1};
  EXPECT_EQ(run(all, split), alone) << "from two stages, in small steps";
}

TEST_F(engine_on_gpu, adapters_come_and_go_between_requests) {
  const auto all = requests(3);
  engine serving(model_, small_engine(60, 64), {pool_, kernels()});
  const auto answer = [&](engine_request request) {
    std::vector<token_id> tokens;
    EXPECT_TRUE(serving.submit(std::move(request)).ok());
    while (serving.step(
        {}, [&](const engine_token& t) { tokens.push_back(t.token); }, [](const ended_sequence&) {})) {
    }
    return tokens;
  };
  const auto expected = run_alone({all[2]}).front();
  serving.add_adapter(adapter_version(7), adapter_);
  EXPECT_EQ(answer(all[2]), expected);
  for (std::uint32_t version = 20; version < 40; ++version) {  // more than the table begins with
    serving.add_adapter(adapter_version(version),
                        std::make_shared<lora_adapter>(read_adapter(golden / "llama" / "adapter", model_->config),
                                                       model_->config.layers));
    engine_request request = all[2];
    request.sequence.adapter = adapter_version(version);
    if (version % 10 != 9) continue;
    EXPECT_EQ(answer(request), expected) << "version " << version;
  }
  serving.remove_adapter(adapter_version(7));
  serving.add_adapter(adapter_version(8), adapter_);
  engine_request again = all[2];
  again.sequence.adapter = adapter_version(8);
  EXPECT_EQ(answer(again), expected);
}

}  // namespace
}  // namespace troupe
