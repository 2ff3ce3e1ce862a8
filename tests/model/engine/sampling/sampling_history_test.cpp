#include "model/engine/sampling/sampling_history.hpp"

#include <gmock/gmock.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;

TEST(penalties, repetition_counts_prompt_and_answer_and_pulls_towards_the_unlikely) {
  sampling_params params;
  params.repetition_penalty = 2.0;
  const std::vector<token_id> prompt{0}, answer{2};
  const sampling_history history(params, prompt, answer);
  std::vector<float> logits{4.0f, 2.5f, -1.0f, -1.5f};
  history.apply(params, logits);
  EXPECT_THAT(logits, ElementsAre(2.0f, 2.5f, -2.0f, -1.5f));
}

TEST(penalties, presence_and_frequency_count_the_answer_alone) {
  sampling_params params;
  params.presence_penalty = 0.5;
  params.frequency_penalty = 0.25;
  const std::vector<token_id> prompt{0, 0, 1};
  sampling_history history(params, prompt);
  for (const token_id token : {1, 2, 2}) history.add(token);
  std::vector<float> logits(4, 1.0f);
  history.apply(params, logits);
  EXPECT_THAT(logits, ElementsAre(1.0f, 0.25f, 0.0f, 1.0f));
}

TEST(penalties, a_resumed_history_equals_the_one_that_went_on) {
  sampling_params params;
  params.repetition_penalty = 1.3;
  params.presence_penalty = 0.7;
  params.frequency_penalty = -0.2;
  const std::vector<token_id> prompt{5, 6}, answer{7, 5, 7};
  sampling_history gone_on(params, prompt);
  for (const token_id token : answer) gone_on.add(token);
  const sampling_history resumed(params, prompt, answer);
  std::vector<float> first(10, 1.5f), second = first;
  gone_on.apply(params, first);
  resumed.apply(params, second);
  EXPECT_EQ(first, second);
}

TEST(penalties, pass_over_tokens_that_the_model_lacks) {
  sampling_params params;
  params.presence_penalty = 1.0;
  sampling_history history(params, {});
  history.add(-1);
  history.add(1000);
  std::vector<float> logits(4, 1.0f);
  history.apply(params, logits);
  EXPECT_THAT(logits, ElementsAre(1.0f, 1.0f, 1.0f, 1.0f));
}

TEST(penalties, bias_comes_before_penalties) {
  sampling_params params;
  params.logit_bias = {{1, 3.0}, {0, -100.0}};
  params.repetition_penalty = 2.0;
  const std::vector<token_id> prompt{1};
  std::vector<float> logits{2.0f, 1.0f, 1.0f};
  sampling_history(params, prompt).apply(params, logits);
  EXPECT_THAT(logits, ElementsAre(-98.0f, 2.0f, 1.0f));
}

}  // namespace
}  // namespace troupe
