#include "model/engine/sampling/sampling_params.hpp"

#include <cmath>

#include <gmock/gmock.h>

#include "base/field_error.hpp"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// Which begins with the field that it is about.
std::string refusal_of(const sampling_params& params) {
  try {
    check(params, 100);
    return {};
  } catch (const field_error& error) {
    EXPECT_THAT(error.what(), StartsWith(error.field() + " "));
    return error.what();
  }
}

template <class Change>
std::string refusal_after(Change change) {
  sampling_params params;
  change(params);
  return refusal_of(params);
}

TEST(sampling_params_check, accepts_defaults_and_limits) {
  EXPECT_EQ(refusal_of({}), "");
  sampling_params params;
  params.temperature = 0.0;
  params.min_p = 1.0;
  params.presence_penalty = -2.0;
  params.top_k = 1'000'000;
  params.logit_bias = {{99, 100.0}};
  params.stop = {"x"};
  EXPECT_EQ(refusal_of(params), "");
}

TEST(sampling_params_check, refuses_lengths_that_no_answer_has) {
  EXPECT_THAT(refusal_after([](auto& p) { p.max_tokens = 0; }), HasSubstr("max_tokens is 0"));
  EXPECT_EQ(refusal_after([](auto& p) { p.max_tokens = 0, p.pooling = hidden_pooling::last; }), "");
  EXPECT_THAT(refusal_after([](auto& p) { p.min_tokens = -1; }), HasSubstr("min_tokens is -1"));
  EXPECT_THAT(refusal_after([](auto& p) { p.min_tokens = p.max_tokens + 1; }), HasSubstr("min_tokens"));
  EXPECT_EQ(refusal_after([](auto& p) { p.min_tokens = p.max_tokens; }), "");
}

TEST(sampling_params_check, refuses_by_name) {
  EXPECT_THAT(refusal_after([](auto& p) { p.temperature = -0.1; }), HasSubstr("temperature is -0.1: use"));
  EXPECT_THAT(refusal_after([](auto& p) { p.temperature = std::nan(""); }), HasSubstr("temperature is nan"));
  EXPECT_THAT(refusal_after([](auto& p) { p.temperature = 1e9; }), HasSubstr("temperature"));
  EXPECT_THAT(refusal_after([](auto& p) { p.top_k = -1; }), HasSubstr("top_k is -1"));
  EXPECT_THAT(refusal_after([](auto& p) { p.top_p = 0.0; }), HasSubstr("top_p is 0"));
  EXPECT_THAT(refusal_after([](auto& p) { p.top_p = 1.1; }), HasSubstr("top_p is 1.1"));
  EXPECT_THAT(refusal_after([](auto& p) { p.min_p = 1.1; }), HasSubstr("min_p is 1.1"));
  EXPECT_THAT(refusal_after([](auto& p) { p.repetition_penalty = 0.0; }), HasSubstr("repetition_penalty is 0"));
  EXPECT_THAT(refusal_after([](auto& p) { p.presence_penalty = 2.5; }), HasSubstr("presence_penalty is 2.5"));
  EXPECT_THAT(refusal_after([](auto& p) { p.frequency_penalty = -3; }), HasSubstr("frequency_penalty is -3"));
  EXPECT_THAT(refusal_after([](auto& p) { p.logprobs = 101; }), HasSubstr("logprobs is 101"));
}

TEST(sampling_params_check, refuses_tokens_and_texts_by_name) {
  EXPECT_THAT(refusal_after([](auto& p) { p.logit_bias = {{100, 1.0}}; }), HasSubstr("logit_bias names token 100"));
  EXPECT_THAT(refusal_after([](auto& p) { p.logit_bias = {{1, 101.0}}; }), HasSubstr("logit_bias is 101"));
  EXPECT_THAT(refusal_after([](auto& p) { p.logit_bias = {{1, 1.0}, {1, 2.0}}; }), HasSubstr("token 1 twice"));
  EXPECT_THAT(refusal_after([](auto& p) { p.logit_bias.resize(2049); }), HasSubstr("logit_bias has 2049 tokens: use"));
  EXPECT_THAT(refusal_after([](auto& p) { p.stop_tokens = {-1}; }), HasSubstr("stop_token_ids names token -1"));
  EXPECT_THAT(refusal_after([](auto& p) { p.stop_tokens.resize(2000); }), HasSubstr("stop_token_ids has 2000"));
  EXPECT_THAT(refusal_after([](auto& p) { p.stop = {""}; }), HasSubstr("stop has an empty text"));
  EXPECT_THAT(refusal_after([](auto& p) { p.stop.assign(40, "x"); }), HasSubstr("stop has 40 texts"));
  EXPECT_THAT(refusal_after([](auto& p) { p.stop = {std::string(2000, 'x')}; }), HasSubstr("2000 bytes"));
}

TEST(ends, are_the_model_s_own_unless_ignored_and_those_of_the_request) {
  sampling_params params;
  params.stop_tokens = {5};
  const std::vector<token_id> own{9, 10};
  EXPECT_THAT(ends_of(params, own), ElementsAre(5, 9, 10));
  params.ignore_eos = true;
  EXPECT_THAT(ends_of(params, own), ElementsAre(5));
}

TEST(ends, may_not_come_before_the_least_number_of_tokens) {
  sampling_params params;
  const std::vector<token_id> ends{5, 9};
  EXPECT_THAT(barred_ends(ends, params, 0), IsEmpty());
  params.min_tokens = 3;
  EXPECT_THAT(barred_ends(ends, params, 2), ElementsAre(5, 9));
  EXPECT_THAT(barred_ends(ends, params, 3), IsEmpty());
}

}  // namespace
}  // namespace troupe
