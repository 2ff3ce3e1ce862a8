#include "actors/requests/sampling_fields.hpp"

#include <tuple>

#include <gtest/gtest.h>

#include "actors/requests/request_fields_impl.hpp"

namespace troupe {
namespace {

auto all_of(const sampling_params& p) {
  return std::tuple(p.temperature, p.top_k, p.top_p, p.min_p, p.repetition_penalty, p.presence_penalty,
                    p.frequency_penalty, p.seed, p.ignore_eos, p.stop, p.stop_tokens, p.min_tokens, p.constraint.kind,
                    p.constraint.text);
}

sampling_params read_again(const sampling_params& params) {
  sampling_params read;
  const json written = json_of(params);
  read_sampling(request_fields(written), read);
  return read;
}

TEST(sampling_fields, are_read_as_they_are_written) {
  sampling_params params;
  params.temperature = 0.5;
  params.top_k = 7;
  params.top_p = 0.9;
  params.min_p = 0.1;
  params.repetition_penalty = 1.1;
  params.presence_penalty = 0.2;
  params.frequency_penalty = 0.3;
  params.seed = UINT64_MAX;
  params.ignore_eos = true;
  params.stop = {"a", "b"};
  params.stop_tokens = {3, 4};
  params.min_tokens = 2;
  params.logit_bias = {{42, -5}};
  for (const output_constraint& form : {output_constraint{constraint_kind::json_schema, R"({"type":"array"})"},
                                        {constraint_kind::regex, "a+"},
                                        {constraint_kind::grammar, "root ::= \"a\""}}) {
    params.constraint = form;
    const sampling_params read = read_again(params);
    EXPECT_EQ(all_of(read), all_of(params));
    ASSERT_EQ(read.logit_bias.size(), 1u);
    EXPECT_EQ(read.logit_bias.front().token, 42);
    EXPECT_EQ(read.logit_bias.front().bias, -5);
  }
}

TEST(sampling_fields, leave_the_seed_as_it_was_drawn_where_it_is_minus_one) {
  const auto seed_after = [](const json& seed) {
    sampling_params params;
    params.seed = 5;
    read_sampling(request_fields(json{{"seed", seed}}), params);
    return params.seed;
  };
  EXPECT_EQ(seed_after(-1), 5u);
  EXPECT_EQ(seed_after(-1.0), 5u);
  EXPECT_EQ(seed_after(nullptr), 5u);
  EXPECT_EQ(seed_after(-2), UINT64_MAX - 1);
  EXPECT_EQ(seed_after(0), 0u);
}

TEST(sampling_fields, say_how_much_is_answered_and_reported) {
  sampling_params params;
  params.max_tokens = 5;
  params.logprobs = 2;
  const json written = json_of(params);
  EXPECT_EQ(written["max_tokens"], 5);
  EXPECT_EQ(written["logprobs"], 2);
}

}  // namespace
}  // namespace troupe
