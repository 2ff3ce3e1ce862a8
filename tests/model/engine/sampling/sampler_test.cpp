#include "model/engine/sampling/sampler.hpp"
#include "base/to_size.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>

#include <gmock/gmock.h>

#include "base/logarithm.hpp"
#include "base/random.hpp"
#include "model/ops/isa.hpp"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::UnorderedElementsAre;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

sampling_params greedy() {
  sampling_params params;
  params.temperature = 0.0;
  return params;
}

token_id choose(const std::vector<float>& logits, const sampling_params& params, std::uint64_t position = 0) {
  sampler chooser(kernels());
  return chooser.sample(logits, params, sampling_history(params, {}), position).token;
}

std::vector<float> logs_of(const std::vector<double>& shares) {
  std::vector<float> logits;
  for (const double share : shares) logits.push_back(static_cast<float>(std::log(share)));
  return logits;
}

constexpr int draws = 20'000;

std::map<token_id, double> frequencies(const std::vector<float>& logits, const sampling_params& params) {
  sampler chooser(kernels());
  const sampling_history history(params, {});
  std::map<token_id, double> shares;
  for (int i = 0; i < draws; ++i)
    shares[chooser.sample(logits, params, history, static_cast<std::uint64_t>(i)).token] += 1.0 / draws;
  return shares;
}

void expect_frequencies(const std::vector<float>& logits, const sampling_params& params,
                        const std::map<token_id, double>& expected) {
  auto shares = frequencies(logits, params);
  for (const auto& [token, share] : expected) EXPECT_NEAR(shares[token], share, 0.02) << "token " << token;
  EXPECT_EQ(shares.size(), expected.size());
}

// --- greedy

TEST(greedy_sampling, takes_the_largest_logit_wherever_it_is) {
  for (const std::size_t size : {1u, 5u, 63u, 64u, 65u, 1000u, 4099u})
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::vector<float> logits(size, -1.0f);
      logits[at] = 2.0f;
      EXPECT_EQ(choose(logits, greedy()), static_cast<token_id>(at)) << size;
    }
}

TEST(greedy_sampling, takes_the_lowest_of_equal_tokens) {
  std::vector<float> logits(1000, 0.0f);
  logits[200] = logits[77] = logits[900] = 3.0f;
  EXPECT_EQ(choose(logits, greedy()), 77);
  EXPECT_EQ(choose({-0.0f, 0.0f}, greedy()), 0);
}

TEST(greedy_sampling, passes_over_what_is_not_a_number) {
  std::vector<float> logits(300, not_a_number);
  EXPECT_EQ(choose(logits, greedy()), 0);
  logits[130] = -infinity;
  EXPECT_EQ(choose(logits, greedy()), 130);
  logits[299] = -5.0f;
  EXPECT_EQ(choose(logits, greedy()), 299);
}

TEST(greedy_sampling, is_what_a_tiny_temperature_and_a_top_k_of_one_give) {
  std::vector<float> logits{0.0f, 1.0f, 1.00001f, 0.5f};
  sampling_params tiny, one;
  tiny.temperature = 1e-6;
  one.top_k = 1;
  EXPECT_EQ(choose(logits, tiny), 2);
  EXPECT_EQ(choose(logits, one), 2);
}

// --- temperature and its cuts

TEST(sampling, follows_the_shares_of_the_softmax) {
  expect_frequencies(logs_of({0.5, 0.1, 0.3, 0.1}), {}, {{0, 0.5}, {1, 0.1}, {2, 0.3}, {3, 0.1}});
}

TEST(sampling, temperature_flattens_and_sharpens) {
  sampling_params params;
  params.temperature = 2.0;  // shares become their square roots
  expect_frequencies(logs_of({0.64, 0.36}), params, {{0, 0.8 / 1.4}, {1, 0.6 / 1.4}});
  params.temperature = 0.5;  // and their squares
  expect_frequencies(logs_of({0.6, 0.4}), params, {{0, 0.36 / 0.52}, {1, 0.16 / 0.52}});
}

TEST(sampling, top_k_keeps_the_most_likely_and_of_equal_ones_the_lowest) {
  sampling_params params;
  params.top_k = 2;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{1, 0.625}, {2, 0.375}});
  params.top_k = 3;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{0, 0.1 / 0.9}, {1, 0.5 / 0.9}, {2, 0.3 / 0.9}});
  params.top_k = 100;
  expect_frequencies(logs_of({0.5, 0.5}), params, {{0, 0.5}, {1, 0.5}});
}

TEST(sampling, top_p_keeps_the_fewest_tokens_that_reach_it) {
  sampling_params params;
  params.top_p = 0.75;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{1, 0.625}, {2, 0.375}});
  params.top_p = 0.49;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{1, 1.0}});
  params.top_p = 1e-300;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{1, 1.0}});
}

TEST(sampling, top_p_counts_equal_shares_exactly) {
  sampling_params params;
  params.top_p = 0.3;
  EXPECT_THAT(frequencies(std::vector<float>(10, 1.0f), params), UnorderedElementsAre(Key(0), Key(1), Key(2)));
}

TEST(sampling, min_p_keeps_tokens_by_their_share_of_the_most_likely) {
  sampling_params params;
  params.min_p = 0.5;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{1, 0.625}, {2, 0.375}});
  params.min_p = 1.0;
  expect_frequencies(logs_of({0.1, 0.4, 0.4, 0.1}), params, {{1, 0.5}, {2, 0.5}});
}

TEST(sampling, top_p_counts_what_min_p_and_top_k_left) {
  sampling_params params;
  params.top_p = 0.6;  // of 0.8: the first alone has 0.625 of it
  params.top_k = 2;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{1, 1.0}});
  params.top_k = 0;
  params.min_p = 0.5;
  expect_frequencies(logs_of({0.1, 0.5, 0.3, 0.1}), params, {{1, 1.0}});
}

TEST(sampling, never_gives_a_token_without_probability) {
  std::vector<float> logits(200, -infinity);
  logits[3] = not_a_number;
  logits[150] = logits[151] = 1.0f;
  EXPECT_THAT(frequencies(logits, {}), UnorderedElementsAre(Key(150), Key(151)));
  sampling_params few;
  few.top_k = 3;
  EXPECT_THAT(frequencies(logits, few), UnorderedElementsAre(Key(150), Key(151)));
}

TEST(sampling, survives_logits_without_shares) {
  sampling_params params;
  params.logprobs = 2;
  sampler chooser(kernels());
  const auto token_of = [&](std::vector<float> logits) {
    const auto chosen = chooser.sample(logits, params, {}, 0);
    EXPECT_FALSE(std::isnan(*chosen.logprob));
    return chosen.token;
  };
  EXPECT_EQ(token_of(std::vector<float>(5, not_a_number)), 0);
  EXPECT_EQ(token_of(std::vector<float>(5, -infinity)), 0);
  EXPECT_EQ(token_of({0.0f, infinity, 1.0f}), 1);
  EXPECT_EQ(token_of({-3e38f, 3e38f}), 1);
}

// --- masks

TEST(sampling, gives_under_a_mask_what_it_gives_where_the_others_have_no_probability) {
  std::mt19937 random(21);
  sampler chooser(kernels());
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits(1 + random() % 500), ruled_out;
    for (float& each : logits) each = static_cast<float>(random() % 1000) / 100.0f;
    std::vector<std::uint64_t> allowed((logits.size() + 63) / 64);
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (random() % 8 == 0 || i == round % logits.size()) allowed[i / 64] |= std::uint64_t{1} << (i % 64);
    ruled_out = logits;
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (!(allowed[i / 64] >> (i % 64) & 1)) ruled_out[i] = -infinity;
    sampling_params params;
    params.temperature = round % 3 ? 0.8 : 0.0;
    if (round % 5 == 1) params.top_k = 7;
    if (round % 5 == 2) params.top_p = 0.8;
    if (round % 5 == 3) params.min_p = 0.2;
    const sampling_history history(params, {});
    const auto position = static_cast<std::uint64_t>(round);
    const token_id token = chooser.sample(logits, params, history, position, allowed).token;
    EXPECT_EQ(token, chooser.sample(ruled_out, params, history, position).token);
    EXPECT_TRUE(allowed[to_size(token) / 64] >> (token % 64) & 1);
  }
}

TEST(sampling, passes_over_barred_tokens_unless_nothing_else_is_left) {
  sampler chooser(kernels());
  const std::vector<float> logits{1, 9, 8, 7};
  const std::vector<token_id> barred{1, 2, 700}, all{0, 1, 2, 3};
  EXPECT_EQ(chooser.sample(logits, greedy(), {}, 0, {}, barred).token, 3);
  for (std::uint64_t position = 0; position < 200; ++position) {
    const token_id drawn = chooser.sample(logits, {}, {}, position, {}, barred).token;
    EXPECT_TRUE(drawn == 0 || drawn == 3) << drawn;
  }
  const std::vector<std::uint64_t> one_two{0b0110};
  EXPECT_EQ(chooser.sample(logits, greedy(), {}, 0, one_two, std::vector<token_id>{1}).token, 2);
  EXPECT_TRUE(one_two[0] >> chooser.sample(logits, greedy(), {}, 0, one_two, barred).token & 1);
  EXPECT_GE(chooser.sample(logits, {}, {}, 0, {}, all).token, 0);
}

TEST(sampling, gives_an_allowed_token_even_where_none_has_a_probability) {
  sampler chooser(kernels());
  const std::vector<float> logits(100, -infinity), none(100, not_a_number);
  const std::vector<std::uint64_t> allowed{0, std::uint64_t{1} << 6};
  for (const auto& each : {logits, none}) {
    EXPECT_EQ(chooser.sample(each, {}, {}, 0, allowed).token, 70);
    EXPECT_EQ(chooser.sample(each, greedy(), {}, 0, allowed).token, 70);
  }
}

// --- penalties and bias

TEST(penalties, take_part_in_greedy_choices) {
  sampling_params params = greedy();
  params.logit_bias = {{1, 3.0}, {0, -100.0}};
  EXPECT_EQ(choose({2.0f, 0.0f, 1.0f}, params), 1);
}

TEST(penalties, take_part_in_draws) {
  sampling_params params;
  params.logit_bias = {{0, std::log(3.0)}};
  expect_frequencies(logs_of({0.25, 0.75}), params, {{0, 0.5}, {1, 0.5}});
}

// --- logprobs

TEST(logprobs, are_those_of_the_logits_as_they_came) {
  sampling_params params = greedy();
  params.logprobs = 2;
  params.logit_bias = {{3, 100.0}};
  sampler chooser(kernels());
  const auto chosen = chooser.sample(logs_of({0.125, 0.5, 0.25, 0.125}), params, sampling_history(params, {}), 0);
  EXPECT_EQ(chosen.token, 3);
  EXPECT_NEAR(*chosen.logprob, std::log(0.125), 1e-6);
  ASSERT_EQ(chosen.alternatives.size(), 2u);
  EXPECT_EQ(chosen.alternatives[0].token, 1);
  EXPECT_NEAR(chosen.alternatives[0].logprob, std::log(0.5), 1e-6);
  EXPECT_EQ(chosen.alternatives[1].token, 2);
  EXPECT_NEAR(chosen.alternatives[1].logprob, std::log(0.25), 1e-6);
}

TEST(logprobs, come_only_where_they_are_asked_for) {
  sampler chooser(kernels());
  sampling_params params;
  EXPECT_FALSE(chooser.sample(logs_of({0.5, 0.5}), params, {}, 0).logprob);
  params.logprobs = 0;
  const auto chosen = chooser.sample(logs_of({0.5, 0.5}), params, {}, 0);
  EXPECT_NEAR(*chosen.logprob, std::log(0.5), 1e-6);
  EXPECT_TRUE(chosen.alternatives.empty());
}

TEST(logprobs, of_a_given_token_have_its_rank) {
  sampler chooser(kernels());
  const auto logits = logs_of({0.125, 0.5, 0.25, 0.125});
  const auto given = chooser.score(logits, 2, 1);
  EXPECT_NEAR(*given.logprob, std::log(0.25), 1e-6);
  EXPECT_EQ(given.rank, 2);
  ASSERT_EQ(given.alternatives.size(), 1u);
  EXPECT_EQ(given.alternatives[0].token, 1);
  EXPECT_EQ(chooser.score(logits, 0, 0).rank, 4) << "of equal ones the last";
}

TEST(logprobs, list_a_small_vocabulary_whole_and_equal_tokens_by_id) {
  sampling_params params = greedy();
  params.logprobs = 20;
  sampler chooser(kernels());
  const auto chosen = chooser.sample(std::vector<float>{1.0f, 2.0f, 1.0f}, params, {}, 0);
  std::vector<token_id> order;
  for (const auto& [token, logprob] : chosen.alternatives) order.push_back(token);
  EXPECT_THAT(order, ElementsAre(1, 0, 2));
}

TEST(logprobs, are_exact_over_a_large_vocabulary) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(50'257);
  for (float& logit : logits) logit = normal(random);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  sampling_params params;
  params.logprobs = 5;
  sampler chooser(kernels());
  const auto chosen = chooser.sample(logits, params, {}, 9);
  EXPECT_NEAR(*chosen.logprob, logits[to_size(chosen.token)] - std::log(sum), 2e-6);
  std::vector<float> sorted = logits;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(chosen.alternatives[i].logprob, sorted[i] - std::log(sum), 2e-6);
}

// --- against the plain way, and alike everywhere

/// Sorts everything and walks through it.
token_id plainly(const std::vector<float>& logits, const sampling_params& params, std::uint64_t position) {
  std::vector<token_id> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<token_id>(i);
  const auto logit = [&](token_id token) { return logits[to_size(token)]; };
  std::sort(order.begin(), order.end(),
            [&](token_id a, token_id b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  const float most = logit(order[0]);
  if (is_greedy(params)) return order[0];
  if (params.top_k > 0 && to_size(params.top_k) < order.size()) order.resize(to_size(params.top_k));
  std::vector<std::uint64_t> weights;
  std::uint64_t total = 0;
  for (const token_id token : order) {
    const float x = (logit(token) - most) * static_cast<float>(1.0 / params.temperature);
    alignas(64) float lanes[16], exponentials[16];
    std::fill(lanes, lanes + 16, x);
    kernels().exponentials(lanes, 16, 0.0f, exponentials);
    const bool kept = params.min_p == 0.0 || x >= static_cast<float>(logarithm(params.min_p));
    weights.push_back(kept ? static_cast<std::uint64_t>(std::nearbyint(std::ldexp(double{exponentials[0]}, 40))) : 0);
    total += weights.back();
  }
  std::uint64_t kept = 0;
  std::size_t last = 0;
  for (const auto wanted = std::ceil(params.top_p * static_cast<double>(total)); last < weights.size(); ++last) {
    kept += weights[last];
    if (static_cast<double>(kept) >= wanted) break;
  }
  const std::uint64_t target = random_below(kept, params.seed, position);
  std::uint64_t sum = 0;
  for (std::size_t i = 0;; ++i)
    if ((sum += weights[i]) > target) return order[i];
}

class random_cases {
 public:
  explicit random_cases(std::uint32_t seed) : random_(seed) {}

  std::vector<float> logits() {
    static constexpr std::size_t sizes[] = {2, 15, 64, 65, 200, 1000, 3001};
    std::vector<float> made(sizes[random_() % std::size(sizes)]);
    std::normal_distribution<float> normal(0.0f, std::uniform_real_distribution<float>(0.01f, 12.0f)(random_));
    const bool coarse = random_() % 3 == 0;  // many equal logits
    for (float& logit : made) logit = coarse ? std::round(normal(random_)) : normal(random_);
    if (random_() % 4 == 0)
      for (int i = 0; i < 10; ++i) made[random_() % made.size()] += 20.0f;
    return made;
  }

  sampling_params params() {
    static constexpr double temperatures[] = {0.01, 0.3, 0.7, 1.0, 1.5, 10.0};
    static constexpr double top_ps[] = {1.0, 1.0, 0.1, 0.5, 0.9, 0.95, 0.999};
    static constexpr std::int32_t top_ks[] = {0, 0, 0, 1, 2, 5, 40, 300, 2500};
    static constexpr double min_ps[] = {0.0, 0.0, 0.0, 0.01, 0.2, 1.0};
    sampling_params made;
    made.temperature = pick(temperatures);
    made.top_p = pick(top_ps);
    made.top_k = pick(top_ks);
    made.min_p = pick(min_ps);
    made.seed = random_();
    return made;
  }

 private:
  template <class T, std::size_t N>
  T pick(const T (&values)[N]) {
    return values[random_() % N];
  }

  std::mt19937 random_;
};

TEST(sampling, gives_what_sorting_the_whole_vocabulary_gives) {
  random_cases cases(1);
  sampler chooser(kernels());
  for (int round = 0; round < 4000; ++round) {
    const auto logits = cases.logits();
    const auto params = cases.params();
    for (std::uint64_t position = 0; position < 3; ++position)
      ASSERT_EQ(chooser.sample(logits, params, {}, position).token, plainly(logits, params, position))
          << "round " << round << " size " << logits.size() << " temperature " << params.temperature << " top_k "
          << params.top_k << " top_p " << params.top_p << " min_p " << params.min_p;
  }
}

TEST(sampling, gives_what_sorting_gives_for_a_large_flat_vocabulary) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> logits(128'256);
  for (float& logit : logits) logit = normal(random);
  sampler chooser(kernels());
  sampling_params params;
  for (const double top_p : {1.0, 0.9})
    for (const std::int32_t top_k : {0, 50, 20'000}) {
      params.top_p = top_p;
      params.top_k = top_k;
      EXPECT_EQ(chooser.sample(logits, params, {}, 1).token, plainly(logits, params, 1)) << top_p << " " << top_k;
    }
  std::fill(logits.begin(), logits.end(), 0.0f);
  EXPECT_EQ(chooser.sample(logits, {}, {}, 1).token, plainly(logits, {}, 1));
}

/// What is unlikely alone is likely together.
TEST(sampling, gives_what_sorting_gives_where_most_of_the_weight_is_far_below_the_largest) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(-10.0f, 0.5f);
  std::vector<float> logits(60'000);
  for (float& logit : logits) logit = normal(random);
  logits[4321] = 0.0f;
  sampler chooser(kernels());
  int others = 0;
  for (const std::int32_t top_k : {0, 30'000})
    for (const double top_p : {1.0, 0.7}) {
      sampling_params params;
      params.top_k = top_k;
      params.top_p = top_p;
      for (std::uint64_t position = 0; position < 3; ++position) {
        const token_id token = chooser.sample(logits, params, {}, position).token;
        EXPECT_EQ(token, plainly(logits, params, position)) << top_k << " " << top_p << " " << position;
        others += token != 4321;
      }
    }
  EXPECT_GT(others, 3);
}

TEST(sampling, is_the_same_on_every_instruction_set) {
  for (const kernel_table* table : available_kernels()) {
    random_cases cases(2);
    sampler here(*table), there(*kernels_of("generic"));
    for (int round = 0; round < 300; ++round) {
      const auto logits = cases.logits();
      auto params = cases.params();
      params.logprobs = 3;
      const auto a = here.sample(logits, params, {}, 5), b = there.sample(logits, params, {}, 5);
      ASSERT_EQ(a.token, b.token) << table->isa;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(*a.logprob), std::bit_cast<std::uint32_t>(*b.logprob)) << table->isa;
    }
  }
}

TEST(sampling, depends_on_seed_and_position_alone) {
  const std::vector<float> logits(100, 0.0f);
  sampling_params params;
  params.seed = 9;
  sampler used(kernels());
  for (std::uint64_t i = 0; i < 50; ++i) used.sample(std::vector<float>(5000, 1.0f), {}, {}, i);
  EXPECT_EQ(used.sample(logits, params, {}, 77).token, choose(logits, params, 77));
  std::map<token_id, int> by_position, by_seed;
  for (std::uint64_t i = 0; i < 200; ++i) {
    ++by_position[choose(logits, params, i)];
    sampling_params other;
    other.seed = i;
    ++by_seed[choose(logits, other, 0)];
  }
  EXPECT_GT(by_position.size(), 70u);
  EXPECT_GT(by_seed.size(), 70u);
}

}  // namespace
}  // namespace troupe
