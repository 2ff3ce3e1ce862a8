#include "model/text/model_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"
#include "tests/model/tokenizer/letters.hpp"

namespace troupe::test {
namespace {

using testing::HasSubstr;

TEST(model_text, answers_end_with_the_end_of_the_tokenizer_and_those_of_the_configuration) {
  const temp_folder folder;
  folder.write("tokenizer.json", letters_tokenizer().dump());
  model_config config;
  config.vocab_size = 96;
  const auto ends = [&](const std::string& of_tokenizer, std::vector<std::int32_t> eos_tokens) {
    folder.write("tokenizer_config.json", of_tokenizer);
    config.eos_tokens = std::move(eos_tokens);
    return end_tokens_of(config, *load_tokenizer(folder.path()));
  };
  using testing::ElementsAre;
  EXPECT_THAT(ends(R"({"eos_token": "</s>"})", {}), ElementsAre(95));
  EXPECT_THAT(ends(R"({"eos_token": "</s>"})", {7, 8}), ElementsAre(95, 7, 8)) << "a chat model's end of a turn";
  EXPECT_THAT(ends(R"({"eos_token": "</s>"})", {7, 95}), ElementsAre(95, 7));
  EXPECT_THAT(ends("{}", {7, 8}), ElementsAre(7, 8));
  config.vocab_size = 95;
  EXPECT_THAT(ends(R"({"eos_token": "</s>"})", {7}), ElementsAre(7)) << "the model has no such token";
}

TEST(model_text, an_empty_prompt_is_the_bos_token_that_only_the_configuration_names) {
  model_config config;
  const auto prompt = [&] { return prompt_of_text(*no_tokenizer(), config, "", "folder"); };
  EXPECT_THAT(refusal(prompt), HasSubstr("folder: has no BOS token"));
  config.bos_token = 7;
  EXPECT_EQ(prompt(), std::vector<token_id>{7});
}

TEST(model_text, an_answer_begins_a_text_behind_special_tokens_unless_it_has_a_form) {
  const auto tokens = parse_tokenizer_json(letters_tokenizer().dump(), "", "letters");
  const std::vector<token_id> none, marks{0, 95}, text{0, 33};
  EXPECT_TRUE(begins_text(*tokens, none, false));
  EXPECT_TRUE(begins_text(*tokens, marks, false));
  EXPECT_FALSE(begins_text(*tokens, text, false));
  EXPECT_FALSE(begins_text(*tokens, marks, true));
}

}  // namespace
}  // namespace troupe::test
