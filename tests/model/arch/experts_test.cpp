// Mixtures of experts: who goes where, and that company does not matter.
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/arch/decoder.hpp"
#include "model/arch/expert_routes.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

model_config mixture_of(std::int64_t experts, std::int64_t taken, bool whole_shares = true) {
  model_config config;
  config.experts.count = experts;
  config.experts.taken = taken;
  config.experts.whole_shares = whole_shares;
  return config;
}

/// Rows of scores, padded with what a product leaves behind the last expert.
class score_rows {
 public:
  score_rows(int rows, std::int64_t experts) : stride_(padded_outs(experts)), scores_(to_size(rows * stride_)) {}

  float* row(int i) { return scores_.data() + i * stride_; }
  const_float_rows all() const { return {scores_.data(), stride_}; }

 private:
  std::int64_t stride_;
  std::vector<float> scores_;
};

std::vector<std::int64_t> experts_of(const expert_routes& routes, int row) {
  std::vector<std::int64_t> experts;
  for (const auto& visit : routes.visits_of(row)) experts.push_back(visit.expert);
  return experts;
}

TEST(expert_routes, take_the_largest_scores_and_of_equal_ones_the_first) {
  expert_routes routes(mixture_of(5, 2), kernels());
  score_rows scores(2, 5);
  std::copy_n(std::array{-1.0f, -3.0f, -2.0f, -9.0f, -1.5f}.data(), 5, scores.row(0));  // the padding is larger
  std::copy_n(std::array{0.0f, 2.0f, 1.0f, 1.0f, 1.0f}.data(), 5, scores.row(1));
  routes.choose(scores.all(), 2);
  EXPECT_EQ(experts_of(routes, 0), (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(experts_of(routes, 1), (std::vector<std::int64_t>{1, 2}));
}

TEST(expert_routes, take_experts_of_the_best_groups_alone) {
  model_config config = mixture_of(6, 2);
  config.experts.groups = 3, config.experts.groups_taken = 1;
  score_rows scores(1, 6);
  std::copy_n(std::array{5.0f, -9.0f, 3.0f, 2.5f, 4.0f, 0.0f}.data(), 6, scores.row(0));
  const auto taken = [&](std::int64_t best) {
    config.experts.group_best = best;
    expert_routes routes(config, kernels());
    routes.choose(scores.all(), 1);
    return experts_of(routes, 0);
  };
  EXPECT_EQ(taken(1), (std::vector<std::int64_t>{0, 1})) << "of the group with the best expert";
  EXPECT_EQ(taken(2), (std::vector<std::int64_t>{2, 3})) << "of that with the best two";
  config.experts.groups_taken = 2;
  EXPECT_EQ(taken(1), (std::vector<std::int64_t>{0, 4}));
}

TEST(expert_routes, give_shares_of_the_softmax) {
  const std::array<float, 5> values = {0.5f, -1.0f, 2.0f, 1.0f, 0.0f};
  double all = 0;
  for (const float value : values) all += std::exp(double(value));
  for (const bool whole : {true, false}) {
    expert_routes routes(mixture_of(5, 2, whole), kernels());
    score_rows scores(1, 5);
    std::copy_n(values.data(), 5, scores.row(0));
    routes.choose(scores.all(), 1);
    const double total = whole ? std::exp(2.0) + std::exp(1.0) : all;
    const auto visits = routes.visits_of(0);
    EXPECT_NEAR(visits[0].share, std::exp(2.0) / total, 1e-6);
    EXPECT_NEAR(visits[1].share, std::exp(1.0) / total, 1e-6);
  }
}

TEST(expert_routes, have_a_place_for_each_visit_in_whole_tiles_of_its_expert) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    const std::int64_t experts = 1 + random() % 20, taken = 1 + random() % experts;
    const int rows = 1 + static_cast<int>(random() % 60);
    const model_config config = mixture_of(experts, taken);
    score_rows scores(rows, experts);
    for (int row = 0; row < rows; ++row)
      for (std::int64_t e = 0; e < experts; ++e) scores.row(row)[e] = static_cast<float>(random() % 7);
    expert_routes routes(config, kernels());
    routes.choose(scores.all(), rows);
    EXPECT_LE(routes.places(), expert_routes::most_places(config, rows));
    std::map<std::int64_t, expert_routes::group> groups;
    for (const auto& group : routes.groups()) {
      EXPECT_EQ(group.first % routes.tile().rows, 0);
      EXPECT_TRUE(groups.emplace(group.expert, group).second);
    }
    int visits = 0;
    for (int row = 0; row < rows; ++row)
      for (const auto& visit : routes.visits_of(row)) {
        const auto& group = groups.at(visit.expert);
        EXPECT_TRUE(visit.place >= group.first && visit.place < group.first + group.rows);
        EXPECT_EQ(routes.row_at(visit.place), row);
        ++visits;
      }
    int filled = 0;
    for (int place = 0; place < routes.places(); ++place) filled += routes.row_at(place) >= 0;
    EXPECT_EQ(filled, visits) << "one row at each place";
    EXPECT_EQ(visits, rows * taken);
  }
}

TEST(experts, give_the_same_bits_to_more_rows_than_go_through_them_together) {
  const auto model = load_for_test(golden / "qwen3-moe", scheme::u8);
  constexpr int sequences = 3, length = 200, blocks_each = 13;
  thread_pool pool(2);
  const auto whole =
      make_decoder(model, {.max_rows = sequences * length, .kv = kv_kind::f32, .blocks = sequences * blocks_each},
                   {pool, kernels()});
  std::vector<std::int32_t> tokens, table(sequences * blocks_each);
  std::iota(table.begin(), table.end(), 0);
  std::vector<pass_sequence> rows;
  std::vector<std::vector<std::int32_t>> texts;
  for (int s = 0; s < sequences; ++s) {
    texts.push_back(random_tokens(length, model->config.vocab_size, static_cast<unsigned>(s)));
    rows.push_back({s * length, length, 0, table.data() + s * blocks_each, nullptr});
    tokens.insert(tokens.end(), texts.back().begin(), texts.back().end());
  }
  aligned_buffer<float> hidden(to_size(sequences * length * whole->hidden_stride()));
  const pass batch{rows, sequences * length};
  whole->embed(batch, tokens, hidden.data());
  whole->run(batch, hidden.data());
  for (int s = 0; s < sequences; ++s) {
    const int last = (s + 1) * length - 1;
    const float* logits = whole->logits(hidden.data(), {std::span(&last, 1)});
    const auto alone = logits_of(model, texts[to_size(s)], {});
    EXPECT_TRUE(same_bits(std::vector(logits, logits + model->config.vocab_size),
                          std::vector(alone.end() - model->config.vocab_size, alone.end())))
        << "sequence " << s;
  }
}

TEST(experts, keep_a_router_in_full_precision) {
  const auto model = load_for_test(golden / "mixtral", scheme::q4);
  for (const layer_weights& layer : model->layers) {
    EXPECT_EQ(layer.router.kind, scheme::f32);
    for (const expert_weights& expert : layer.experts) EXPECT_EQ(expert.up.kind, scheme::q4);
  }
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return std::sqrt(squares);
}

TEST(experts, may_be_quantized_but_for_some_or_for_some_of_their_matrices) {
  const auto load = [](std::optional<scheme> quant, std::vector<std::string> keep = {}) {
    thread_pool pool(2);
    return load_model(golden / "mixtral", {quant, std::move(keep), test_cache(), {}}, pool);
  };
  const auto logits = [](const std::shared_ptr<const loaded_model>& model) {
    return logits_of(model, random_tokens(40, model->config.vocab_size, 1));
  };
  const auto exact = logits(load(scheme::f32));
  const double of_all = distance(logits(load(scheme::u8)), exact);
  const auto but_for_one = load(scheme::u8, {"experts.0."}),
             but_for_matrices = load(scheme::u8, {"up_proj", "down_proj"});
  for (const layer_weights& layer : but_for_one->layers) {
    EXPECT_NE(layer.experts[0].up.kind, scheme::u8);
    EXPECT_EQ(layer.experts[1].up.kind, scheme::u8);
  }
  for (const layer_weights& layer : but_for_matrices->layers) {
    EXPECT_NE(layer.experts[0].up.kind, scheme::u8);
    EXPECT_EQ(layer.experts[0].gate.kind, scheme::u8);
  }
  EXPECT_LT(distance(logits(but_for_one), exact), 2 * of_all);
  EXPECT_LT(distance(logits(but_for_matrices), exact), 2 * of_all);
}

}  // namespace
}  // namespace troupe
