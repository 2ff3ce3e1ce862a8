#include "model/engine/evaluate.hpp"
#include "base/to_size.hpp"

#include <gmock/gmock.h>

#include <cmath>

#include "model/ops/isa.hpp"
#include "tests/base/places.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/model/tokenizer/letters.hpp"

namespace troupe {
namespace {

/// The golden llama with a letter a token; <s> is 0 and goes before every text.
class evaluation_of_a_text : public testing::Test {
 protected:
  evaluation over(const std::string& text, std::int64_t positions = 256) {
    single_sequence sequence(model_, {.positions = positions, .kv = kv_kind::f32}, {pool_, kernels()});
    return evaluate(sequence, kernels(), *letters_, text, {});
  }
  /// The mean surprise at a document's letters, by the definition.
  double surprise_at(const std::string& document) {
    std::vector<std::int32_t> tokens{0};
    for (const char c : document) tokens.push_back(c - ' ');
    const auto logits = logits_of(model_, tokens);
    const auto vocab = to_size(model_->config.vocab_size);
    double sum = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      double total = 0;
      for (std::size_t id = 0; id < vocab; ++id) total += std::exp(double(logits[i * vocab + id]));
      sum += std::log(total) - double(logits[i * vocab + to_size(tokens[i + 1])]);
    }
    return sum / static_cast<double>(document.size());
  }

  std::shared_ptr<const loaded_model> model_ = load_for_test(test::golden / "llama", scheme::f32);
  std::shared_ptr<const tokenizer> letters_ =
      parse_tokenizer_json(test::letters_tokenizer(test::begins_texts).dump(), R"({"bos_token":"<s>"})", "letters");
  thread_pool pool_{2};
};

TEST_F(evaluation_of_a_text, is_the_mean_surprise_at_its_tokens) {
  const auto got = over("HELLOWORLD");
  EXPECT_EQ(got.tokens, 10);
  EXPECT_NEAR(got.nll, surprise_at("HELLOWORLD"), 1e-5);
  EXPECT_NEAR(got.perplexity(), std::exp(got.nll), 1e-9);
}

TEST_F(evaluation_of_a_text, reads_each_document_on_its_own) {
  const auto got = over("\nHELLO\n<|endoftext|>\n\nYES\n<|endoftext|><|endoftext|>\n");
  EXPECT_EQ(got.tokens, 8);
  EXPECT_NEAR(got.nll, (5 * surprise_at("HELLO") + 3 * surprise_at("YES")) / 8, 1e-5);
}

TEST_F(evaluation_of_a_text, counts_every_token_of_a_long_document_once) {
  const std::string text(100, 'Q');
  for (const std::int64_t positions : {2, 3, 16, 17, 100, 101, 200})
    EXPECT_EQ(over(text, positions).tokens, 100) << positions;
  EXPECT_NEAR(over(text, 101).nll, over(text, 200).nll, 1e-12);
}

TEST_F(evaluation_of_a_text, refuses_what_it_cannot_judge) {
  EXPECT_THAT(test::refusal([&] { over(""); }), testing::HasSubstr("longer text"));
  EXPECT_THAT(test::refusal([&] { over("HELLO", 1); }), testing::HasSubstr("context"));
}

}  // namespace
}  // namespace troupe
