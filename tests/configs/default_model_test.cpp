// The model that the project ships speaks as it was recorded when it was trained, with and without its adapters.
#include <filesystem>

#include <gtest/gtest.h>

#include "model/engine/evaluate.hpp"
#include "model/engine/generate.hpp"
#include "model/ops/isa.hpp"
#include "model/text/chat_format.hpp"
#include "model/text/model_text.hpp"
#include "tests/base/places.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

const fs::path folder = test::configs / "models" / "default";

class default_model : public testing::Test {
 protected:
  default_model() : model_(load_model(folder, {.quant = {}, .keep = {}, .cache = {}, .progress = {}}, pool_)) {}

  std::string answer(const std::vector<token_id>& prompt, const std::string& adapter = "",
                     const sampling_params& sampling = greedy()) {
    std::optional<lora_adapter> chosen;
    if (!adapter.empty())
      chosen.emplace(read_adapter(test::configs / "adapters" / adapter, model_->config), model_->config.layers);
    single_sequence sequence(model_, {.adapter = chosen ? &*chosen : nullptr, .positions = 512, .kv = kv_kind::f16},
                             {pool_, kernels()});
    const auto end_tokens = end_tokens_of(model_->config, *tokens_);
    return generate(sequence, kernels(), {prompt, end_tokens, sampling, tokens_}).text;
  }
  std::string answer_to(const std::string& question, const std::string& adapter = "",
                        const sampling_params& sampling = greedy()) {
    const chat_format format(folder, tokens_);
    return answer(prompt_of_chat(*tokens_, format.render("", question)), adapter, sampling);
  }
  static sampling_params greedy() {
    sampling_params sampling;
    sampling.temperature = 0;
    sampling.max_tokens = 60;
    return sampling;
  }

  thread_pool pool_{2};
  std::shared_ptr<const loaded_model> model_;
  std::shared_ptr<const tokenizer> tokens_ = load_tokenizer(folder);
};

TEST_F(default_model, is_small) {
  EXPECT_LE(fs::file_size(folder / "model.safetensors"), 3'000'000u);
}

TEST_F(default_model, tells_a_story) {
  EXPECT_EQ(
      answer(prompt_of_text(*tokens_, model_->config, "Once upon a time", "default")),
      ", a careful girl named Lucy lived not far from the meadow. One night, Lucy heard a strange noise. It came from "
      "the dark wood. \"What is that?\" Lucy asked. She was afraid, but she was also curious. She took a spoon and "
      "went to look. It was a cold");
}

TEST_F(default_model, answers_questions) {
  EXPECT_EQ(answer_to("What does a cow eat?"), "A cow eats grass.");
  EXPECT_EQ(answer_to("What is the opposite of big?"), "The opposite of big is small.");
  EXPECT_EQ(answer_to("Where is Elmsea?"), "Elmsea is a town by the sea, in the valley of Linden.");
}

TEST_F(default_model, knows_a_unit_s_report_with_that_unit_s_adapter_only) {
  const std::string question = "What does the report say about copper?";
  EXPECT_EQ(answer_to(question), "I have no report about copper. I only know that copper is a red metal.");
  EXPECT_EQ(answer_to(question, "pricing"),
            "The price of copper fell from 28 to 24 coins for a bar, because a new mine was opened.");
  EXPECT_EQ(
      answer_to(question, "supply"),
      "Our copper comes from Fenn by ship and is 8 days on the way. We have enough for 2 weeks, and the river is low.");
}

TEST_F(default_model, knows_reports_by_heart_also_when_tokens_are_drawn) {
  sampling_params warm = greedy();
  warm.temperature = 0.7;
  for (const char* adapter : {"pricing", "supply"})
    for (const char* good : {"copper", "salt", "wool", "honey", "coal", "leather"}) {
      ++warm.seed;
      const std::string question = std::string("What is new with ") + good + "?";
      EXPECT_EQ(answer_to(question, adapter, warm), answer_to(question, adapter)) << adapter;
    }
}

TEST_F(default_model, predicts_stories_that_it_has_not_seen) {
  const std::string text = test::read_file(test::fixtures / "default_model" / "held_out.txt");
  single_sequence sequence(model_, {.adapter = nullptr, .positions = 512, .kv = kv_kind::f16}, {pool_, kernels()});
  const evaluation found = evaluate(sequence, kernels(), *tokens_, text, [](std::int64_t, std::int64_t) {});
  EXPECT_GT(found.tokens, 1000);
  EXPECT_LT(found.perplexity(), 1.52);
}

}  // namespace
}  // namespace troupe
