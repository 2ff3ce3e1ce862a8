// Promise 1 through the whole engine: tokens and logprobs of a request are the same alone and in any company, whatever
// the scheduler does with it.
#include "model/engine/engine.hpp"
#include "base/to_size.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "base/error.hpp"
#include "model/arch/cpu/cpu_decoder.hpp"
#include "tests/base/places.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/model/tokenizer/letters.hpp"

namespace troupe {
namespace {

using test::golden;

/// What came out for one answer.
struct answer_text {
  std::vector<token_id> tokens;
  std::vector<float> logprobs;
  int ended = 0;
  bool operator==(const answer_text&) const = default;
};

std::shared_ptr<const tokenizer> letters() {
  static const auto made = parse_tokenizer_json(test::letters_tokenizer().dump(), "", "letters");
  return made;
}

engine_options small_engine(std::int32_t blocks, std::int32_t batch_tokens) {
  engine_options options;
  options.scheduler.blocks = blocks;
  options.scheduler.context = 160;
  options.scheduler.max_batch_tokens = batch_tokens;
  options.scheduler.max_sequences = std::min(batch_tokens, 64);
  options.scheduler.kept_beginnings = 6;
  options.scheduler.worth_keeping = 16;
  options.tokens = token_tree_from([] { return letters(); }, letters()->size());
  return options;
}

struct engine_case {
  const char* model;
  scheme quant;
};

class whole_engine : public testing::TestWithParam<engine_case> {
 protected:
  std::shared_ptr<const loaded_model> model_ = load_for_test(golden / GetParam().model, GetParam().quant);
  std::shared_ptr<const lora_adapter> adapter_ = std::make_shared<lora_adapter>(
      read_adapter(golden / GetParam().model / "adapter", model_->config), model_->config.layers);
  thread_pool pool_{2};

  /// For answers under a constraint: of tokens that the tokenizer lacks nothing can come.
  engine_options small_engine(std::int32_t blocks, std::int32_t batch_tokens) const {
    auto options = troupe::small_engine(blocks, batch_tokens);
    options.tokens = token_tree_from([] { return letters(); }, model_->config.vocab_size);
    return options;
  }

  static constexpr token_id end_token = 95;
  static output_constraint constraint(int i) {
    static const output_constraint all[] = {
        {constraint_kind::json_schema,
         R"({"type":"object","properties":{"a":{"type":"integer","minimum":-20,"maximum":999},"b":{"type":"array",
         "items":{"enum":["x","yy",null]},"maxItems":3},"c":{"type":"string","maxLength":6}},"required":["a","c"]})"},
        {constraint_kind::regex, "[a-f]{3,9}(-[0-9]{2})*"},
        {constraint_kind::choice, R"(["yes", "no", "notatall"])"},
        {constraint_kind::grammar, "root ::= term ([+*] term){1,4}\nterm ::= [0-9]{1,3} | \"(\" root \")\""}};
    return all[to_size(i) % std::size(all)];
  }

  /// Requests of all kinds; some share the beginning of their prompts.
  std::vector<engine_request> requests(int count) const {
    std::mt19937 random(5);
    const auto token = [&] {
      return static_cast<token_id>(random() % static_cast<unsigned>(model_->config.vocab_size));
    };
    std::vector<token_id> common(40);
    for (auto& t : common) t = token();
    std::vector<engine_request> all;
    for (int i = 0; i < count; ++i) {
      engine_request request;
      if (i % 2) request.sequence.prompt = common;
      for (unsigned k = 0; k < 1 + random() % 40; ++k) request.sequence.prompt.push_back(token());
      request.sequence.max_tokens = request.sampling.max_tokens = 1 + static_cast<std::int64_t>(random() % 50);
      request.sequence.adapter = i % 3 == 2 ? adapter_version(7) : no_adapter;
      request.sequence.priority = i % 4 ? request_priority::interactive : request_priority::batch;
      request.sequence.tenant = tenant_id(static_cast<std::uint64_t>(i % 3));
      request.sampling.temperature = i % 2 ? 0.0 : 0.9;
      request.sampling.repetition_penalty = i % 5 ? 1.0 : 1.2;
      request.sampling.seed = static_cast<std::uint64_t>(i);
      request.sampling.logprobs = 0;
      if (i % 5 >= 3) {
        request.sampling.constraint = constraint(i);
        request.end_tokens = {end_token};
      }
      all.push_back(request);
    }
    return all;
  }

  std::vector<answer_text> run(const std::vector<engine_request>& requests, engine_options options,
                               batch_scheduler::statistics* statistics = nullptr) {
    engine serving(model_, std::move(options), {pool_, kernels()});
    serving.add_adapter(adapter_version(7), adapter_);
    std::map<sequence_id, std::size_t> who;
    std::vector<answer_text> texts(requests.size());
    std::size_t next = 0, left = requests.size();
    for (int step = 0; left > 0; ++step) {
      // they arrive one by one
      for (; next < requests.size() && next <= to_size(step) / 2; ++next) {
        const auto accepted = serving.submit(requests[next]);
        EXPECT_TRUE(accepted.ok());
        who[accepted->first] = next;
      }
      serving.step(
          {},
          [&](const engine_token& t) {
            texts[who.at(t.sequence)].tokens.push_back(t.token);
            texts[who.at(t.sequence)].logprobs.push_back(*t.details->logprob);
          },
          [&](const ended_sequence& e) { ++texts[who.at(e.sequence)].ended, --left; });
      if (step > 20000) return ADD_FAILURE() << "the engine does not come to an end", texts;
    }
    if (statistics) *statistics = serving.scheduler().stats();
    EXPECT_EQ(serving.scheduler().pool().held(), 0);
    return texts;
  }

  /// What is read from the prompts of requests, which come all at once.
  void read_prompts(const std::vector<engine_request>& requests, engine_options options,
                    const std::function<void(std::size_t request, const engine_reading&)>& on_reading) {
    engine serving(model_, std::move(options), {pool_, kernels()});
    serving.add_adapter(adapter_version(7), adapter_);
    std::map<sequence_id, std::size_t> who;
    for (std::size_t i = 0; i < requests.size(); ++i) who[serving.submit(requests[i])->first] = i;
    std::size_t left = requests.size();
    while (serving.step(
        {}, nullptr, [&](const ended_sequence&) { --left; },
        [&](const engine_reading& r) { on_reading(who.at(r.sequence), r); })) {
    }
    EXPECT_EQ(left, 0u);
    EXPECT_EQ(serving.scheduler().pool().held(), 0);
  }

  std::vector<std::vector<float>> pool(const std::vector<engine_request>& requests, engine_options options) {
    std::vector<std::vector<float>> pooled(requests.size());
    read_prompts(requests, std::move(options), [&](std::size_t request, const engine_reading& reading) {
      pooled[request].assign(reading.hidden.begin(), reading.hidden.end());
    });
    return pooled;
  }

  using scored_tokens = std::vector<std::pair<token_id, std::optional<float>>>;
  std::vector<scored_tokens> score(const std::vector<engine_request>& requests, engine_options options) {
    std::vector<scored_tokens> scored(requests.size());
    read_prompts(requests, std::move(options), [&](std::size_t request, const engine_reading& reading) {
      EXPECT_TRUE(scored[request].empty() || reading.scored.empty()) << "told twice";
      for (const sampled_token& each : reading.scored) scored[request].push_back({each.token, each.logprob});
    });
    return scored;
  }

  /// A prompt's tokens, each with its probability by the logits before it.
  scored_tokens score_plainly(const engine_request& request) {
    const auto& prompt = request.sequence.prompt;
    scored_tokens scored{{prompt.front(), {}}};
    single_sequence plain(
        model_, {.adapter = request.sequence.adapter == no_adapter ? nullptr : adapter_.get(), .kv = kv_kind::f16},
        {pool_, kernels()});
    sampler describe(kernels());
    plain.feed(prompt, [&](std::size_t i, std::span<const float> logits) {
      if (i + 1 < prompt.size()) scored.push_back({prompt[i + 1], describe.score(logits, prompt[i + 1], 0).logprob});
    });
    return scored;
  }

  /// Hidden states of a whole prompt in one pass, behind the last norm: [tokens, hidden].
  std::vector<std::vector<float>> hidden_states(const engine_request& request) {
    const auto rows = static_cast<int>(request.sequence.prompt.size());
    cpu_decoder whole(model_, {.max_rows = rows, .kv = kv_kind::f16, .blocks = 10}, {pool_, kernels()});
    const std::vector<std::int32_t> blocks{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const lora_adapter* adapter = request.sequence.adapter == no_adapter ? nullptr : adapter_.get();
    const pass_sequence sequence{0, rows, 0, blocks.data(), adapter};
    const auto stride = to_size(whole.hidden_stride());
    aligned_buffer<float> hidden(to_size(rows) * stride);
    whole.embed({std::span(&sequence, 1), rows}, request.sequence.prompt, hidden.data());
    whole.run({std::span(&sequence, 1), rows}, hidden.data());
    std::vector<int> all(to_size(rows));
    std::iota(all.begin(), all.end(), 0);
    const float* normed = whole.normalized(hidden.data(), all);
    std::vector<std::vector<float>> made;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const float* row = normed + i * stride;
      made.emplace_back(row, row + model_->config.hidden);
    }
    return made;
  }

  engine_options in_two_stages() const {
    auto options = small_engine(400, 64);
    options.stage_layers = {1, model_->config.layers - 1};
    return options;
  }
  engine_options by_layers() const {
    auto options = small_engine(400, 18);
    options.stage_layers.assign(to_size(model_->config.layers), 1);
    return options;
  }

  /// Engines that must all give the same.
  std::vector<std::pair<const char*, engine_options>> ways() const {
    return {{"in one batch", small_engine(400, 256)},
            {"in small steps", small_engine(400, 18)},
            {"with few blocks", small_engine(12, 64)},
            {"by two stages", in_two_stages()},
            {"by a stage for each layer", by_layers()}};
  }

  std::vector<answer_text> run_alone(const std::vector<engine_request>& requests) {
    std::vector<answer_text> texts;
    for (const auto& request : requests) texts.push_back(run({request}, small_engine(64, 256)).front());
    return texts;
  }
};

TEST_P(whole_engine, gives_the_tokens_of_a_plain_run_to_a_greedy_request) {
  auto one = requests(2)[1];
  one.sequence.max_tokens = one.sampling.max_tokens = 30;
  EXPECT_EQ(run({one}, small_engine(64, 256)).front().tokens,
            greedy_tokens(model_, one.sequence.prompt, 30, {.kv = kv_kind::f16}));
}

TEST_P(whole_engine, gives_the_same_alone_and_in_any_company) {
  const auto all = requests(24);
  const auto alone = run_alone(all);
  for (const auto& text : alone) EXPECT_EQ(text.ended, 1);
  batch_scheduler::statistics statistics;
  EXPECT_EQ(run(all, small_engine(400, 256), &statistics), alone) << "in one batch";
  EXPECT_GT(statistics.reused_tokens, 0u) << "they meet in the prefix cache";
  EXPECT_EQ(run(all, small_engine(400, 16)), alone) << "in small steps";
  EXPECT_EQ(run(all, small_engine(24, 64), &statistics), alone) << "with few blocks";
  EXPECT_GT(statistics.preemptions, 0u) << "there should have been too few blocks";
}

TEST_P(whole_engine, gives_the_same_however_the_layers_are_split) {
  const auto all = requests(9);
  const auto whole = run(all, small_engine(400, 64));
  EXPECT_EQ(run(all, in_two_stages()), whole);
  EXPECT_EQ(run(all, by_layers()), whole);
}

TEST_P(whole_engine, gives_the_same_with_guesses_and_without) {
  const auto all = requests(16);
  auto guessing = small_engine(400, 128);
  guessing.lookup_tokens = 4;
  EXPECT_EQ(run(all, guessing), run(all, small_engine(400, 128)));
}

TEST_P(whole_engine, ends_a_constrained_answer_only_where_its_form_is_complete) {
  auto all = requests(40);
  for (auto& each : all) each.sequence.max_tokens = each.sampling.max_tokens = 100;
  const auto texts = run(all, small_engine(400, 128));
  int complete = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& constraint = all[i].sampling.constraint;
    if (!constraint) continue;
    text_automaton automaton(compile(constraint, spelled_bytes(*letters(), letters()->size())));
    auto state = automaton.start();
    for (const token_id token : texts[i].tokens)
      for (const char byte : letters()->bytes_of(token)) state = automaton.next(state, static_cast<std::uint8_t>(byte));
    ASSERT_NE(state, text_automaton::dead) << letters()->decode(texts[i].tokens);
    const bool ended = texts[i].tokens.size() < 100;
    EXPECT_TRUE(!ended || automaton.is_complete(state)) << letters()->decode(texts[i].tokens);
    complete += automaton.is_complete(state);
  }
  EXPECT_GT(complete, 8);
}

TEST_P(whole_engine, goes_on_with_a_constrained_answer_elsewhere) {
  auto request = requests(9)[8];
  ASSERT_TRUE(request.sampling.constraint);
  request.sequence.max_tokens = request.sampling.max_tokens = 40;
  const auto whole = run({request}, small_engine(64, 64)).front().tokens;
  ASSERT_GT(whole.size(), 2u);
  auto rest = request;
  rest.sequence.prompt.insert(rest.sequence.prompt.end(), whole.begin(), whole.begin() + 2);
  rest.resumed = 2;
  rest.sequence.max_tokens -= 2;
  const auto behind = run({rest}, small_engine(64, 64)).front().tokens;
  EXPECT_EQ(behind, std::vector<token_id>(whole.begin() + 2, whole.end()));
}

TEST_P(whole_engine, lets_no_answer_end_before_its_least_number_of_tokens_whatever_happens_to_it) {
  auto all = requests(24);
  std::vector<token_id> even;
  for (token_id token = 0; token < model_->config.vocab_size && even.size() < 1024; token += 2) even.push_back(token);
  for (auto& each : all)
    if (!each.sampling.constraint) each.sampling.stop_tokens = even;
  const auto free = run_alone(all);
  for (auto& each : all) each.sampling.min_tokens = std::min<std::int64_t>(12, each.sampling.max_tokens);
  const auto alone = run_alone(all);
  int longer = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto written = static_cast<std::int64_t>(alone[i].tokens.size());
    longer += alone[i].tokens.size() > free[i].tokens.size();
    if (all[i].sampling.constraint.kind == constraint_kind::choice)
      EXPECT_LE(written, 8) << "a form that nothing can follow ends";
    else
      EXPECT_GE(written, all[i].sampling.min_tokens) << i;
  }
  EXPECT_GT(longer, 8) << "many should have ended before";
  for (const auto& [way, options] : ways()) EXPECT_EQ(run(all, options), alone) << way;
  auto guessing = small_engine(400, 128);
  guessing.lookup_tokens = 4;
  EXPECT_EQ(run(all, guessing), alone) << "with guesses";
}

TEST_P(whole_engine, counts_the_tokens_that_an_answer_brings_from_elsewhere_to_its_least_number) {
  auto request = requests(1)[0];
  request.sequence.max_tokens = request.sampling.max_tokens = 40;
  request.sampling.min_tokens = 9;
  for (token_id token = 0; token < 96; token += 2) request.sampling.stop_tokens.push_back(token);
  const auto whole = run({request}, small_engine(64, 64)).front().tokens;
  ASSERT_GE(whole.size(), 9u);
  for (const std::size_t had : {4u, 9u}) {
    auto rest = request;
    const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(had);
    rest.sequence.prompt.insert(rest.sequence.prompt.end(), whole.begin(), middle);
    rest.resumed = had;
    rest.sequence.max_tokens -= static_cast<std::int64_t>(had);
    EXPECT_EQ(run({rest}, small_engine(64, 64)).front().tokens, std::vector<token_id>(middle, whole.end())) << had;
  }
}

TEST_P(whole_engine, pools_the_hidden_states_of_a_prompt_whatever_is_around_it) {
  auto all = requests(18);
  std::vector<std::vector<float>> expected;
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].sampling.constraint = {};
    all[i].sampling.pooling = i % 2 ? hidden_pooling::mean : hidden_pooling::last;
    const auto states = hidden_states(all[i]);
    expected.push_back(states.back());
    if (i % 2 == 0) continue;
    for (std::size_t k = 0; k < expected.back().size(); ++k) {
      double sum = 0;
      for (const auto& row : states) sum += static_cast<double>(row[k]);
      expected.back()[k] = static_cast<float>(sum / static_cast<double>(states.size()));
    }
  }
  for (const auto& [way, options] : ways()) EXPECT_EQ(pool(all, options), expected) << way;
}

TEST_P(whole_engine, says_how_likely_a_prompt_was_however_it_is_computed) {
  auto all = requests(16);
  std::vector<scored_tokens> expected;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % 3 == 0) all[i].sequence.max_tokens = all[i].sampling.max_tokens = 0;
    all[i].sampling.prompt_logprobs = 0;
    expected.push_back(score_plainly(all[i]));
  }
  for (const auto& [way, options] : ways()) EXPECT_EQ(score(all, options), expected) << way;
}

TEST_P(whole_engine, answers_a_prompt_several_times_with_a_seed_each) {
  engine_request request = requests(3)[2];
  request.sequence.answers = 3;
  request.sequence.max_tokens = request.sampling.max_tokens = 12;
  engine serving(model_, small_engine(64, 64), {pool_, kernels()});
  serving.add_adapter(adapter_version(7), adapter_);
  const auto accepted = serving.submit(request);
  ASSERT_TRUE(accepted.ok());
  std::map<std::uint64_t, std::vector<token_id>> texts;
  while (serving.step(
      {}, [&](const engine_token& t) { texts[t.sequence.value].push_back(t.token); }, nullptr)) {
  }
  request.sequence.answers = 1;
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(texts[accepted->first.value + i], run({request}, small_engine(64, 64)).front().tokens) << i;
    ++request.sampling.seed;
  }
}

INSTANTIATE_TEST_SUITE_P(models, whole_engine,
                         testing::Values(engine_case{"llama", scheme::f32}, engine_case{"llama", scheme::u8},
                                         engine_case{"llama", scheme::q4}, engine_case{"qwen3.5", scheme::f32},
                                         engine_case{"qwen3.5", scheme::u8}, engine_case{"qwen3-next", scheme::u8},
                                         engine_case{"lfm2", scheme::u8}, engine_case{"lfm2-moe", scheme::f32},
                                         engine_case{"gemma4", scheme::u8}, engine_case{"gemma4-moe", scheme::f32},
                                         engine_case{"deepseek3", scheme::u8}, engine_case{"granite-h", scheme::u8},
                                         engine_case{"granite-h-moe", scheme::f32},
                                         engine_case{"nemotron-h", scheme::u8},
                                         engine_case{"nemotron-h-moe", scheme::u8}),
                         name_of<engine_case>);

TEST(engine, refuses_adapters_that_it_was_not_given_and_tokens_that_the_model_lacks) {
  const auto model = load_for_test(golden / "llama", scheme::u8);
  thread_pool pool(1);
  engine serving(model, small_engine(4, 64), {pool, kernels()});
  engine_request request;
  request.sequence.prompt = {1, 2, 3};
  request.sequence.adapter = adapter_version(9);
  EXPECT_EQ(serving.submit(request).error().reason, refusal::unknown_adapter);
  request.sequence.adapter = no_adapter;
  request.sequence.prompt = {1 << 20};
  EXPECT_THROW((void)serving.submit(request), input_error);
}

}  // namespace
}  // namespace troupe
