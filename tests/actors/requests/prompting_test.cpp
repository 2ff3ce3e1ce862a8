#include "actors/requests/prompting.hpp"

#include "model/text/model_text.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

sampling_params params(std::int64_t max_tokens = 16) {
  sampling_params made;
  made.max_tokens = max_tokens;
  return made;
}

prompt_input text(std::string what) {
  return {std::move(what), {}, {}};
}

engine_request prepare(const prompting& prompts, const prompt_input& input, const sampling_params& sampling) {
  return prompts.prepare(input, sampling, 1, request_priority::interactive);
}

TEST(prompting, turns_texts_and_tokens_into_what_a_replica_computes) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder);
  const auto made = prepare(*prompts, text("AB"), params());
  EXPECT_EQ(made.sequence.prompt, letters("AB"));
  EXPECT_EQ(made.sequence.max_tokens, 16);
  EXPECT_EQ(made.end_tokens, std::vector<token_id>{95});
  EXPECT_FALSE(begins_text(prompts->tokens(), made.sequence.prompt, false));
  EXPECT_EQ(prepare(*prompts, {{}, letters("AB"), {}}, params()).sequence.prompt, letters("AB"));
}

TEST(prompting, an_empty_text_is_bos_alone) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder);
  const auto made = prepare(*prompts, text(""), params());
  EXPECT_EQ(made.sequence.prompt, std::vector<token_id>{0});
  EXPECT_TRUE(begins_text(prompts->tokens(), made.sequence.prompt, false));
}

TEST(prompting, puts_bos_before_a_text_unless_told_otherwise) {
  const temp_folder folder;
  const auto plain = letters_prompting(folder);
  auto tokenizer = letters_tokenizer();
  tokenizer["post_processor"] = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
          {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [0]}}})");
  folder.write("letters/tokenizer.json", tokenizer.dump());
  const prompting prompts(folder.path() / "letters", plain->config(), 0);
  EXPECT_EQ(prompts.encode({.text = "AB"}), (std::vector<token_id>{0, 'A' - ' ', 'B' - ' '}));
  EXPECT_EQ(prompts.encode({.text = "AB", .add_special = false}), letters("AB"));
  const auto shorter = prepare(prompts, {.text = "ABCD", .most_tokens = 2}, params());
  EXPECT_EQ(shorter.sequence.prompt, (std::vector<token_id>{0, 'D' - ' '}));
}

TEST(prompting, keeps_the_last_tokens_of_a_prompt_that_is_to_be_shorter) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder, 4);
  const auto kept = [&](prompt_input input, std::int64_t most_tokens, std::int64_t answered = 1) {
    input.most_tokens = most_tokens;
    auto sampling = params(answered);
    if (answered == 0) sampling.pooling = hidden_pooling::last;
    return prepare(*prompts, input, sampling).sequence.prompt;
  };
  EXPECT_EQ(kept(text("ABCDEF"), 2), letters("EF"));
  EXPECT_EQ(kept(text("AB"), 3), letters("AB"));
  EXPECT_EQ(kept({{}, letters("ABCDEF"), {}}, 2), letters("EF"));
  EXPECT_EQ(kept(text("ABCDEF"), -1), letters("DEF"));
  EXPECT_EQ(kept(text("ABCDEF"), -1, 0), letters("CDEF"));
  EXPECT_EQ(kept(text(std::string(1000, 'A') + "B"), 2), letters("AB"));
}

TEST(prompting, keeps_the_first_tokens_where_that_is_asked_for) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder, 4);
  const auto kept = [&](prompt_input input, std::int64_t most_tokens) {
    input.most_tokens = most_tokens;
    input.keeps_first = true;
    return prepare(*prompts, input, params(1)).sequence.prompt;
  };
  EXPECT_EQ(kept(text("ABCDEF"), 2), letters("AB"));
  EXPECT_EQ(kept(text("AB"), 3), letters("AB"));
  EXPECT_EQ(kept({{}, letters("ABCDEF"), {}}, 2), letters("AB"));
  EXPECT_EQ(kept(text("ABCDEF"), -1), letters("ABC"));
  EXPECT_EQ(kept(text("ABCDEF</s>"), 2), letters("AB")) << "whose last token is the client's own";
}

TEST(prompting, keeps_what_the_tokenizer_puts_behind_a_text) {
  const temp_folder folder;
  const auto plain = letters_prompting(folder);
  auto tokenizer = letters_tokenizer();
  tokenizer["post_processor"] = json::parse(
      R"({"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}},
          {"SpecialToken": {"id": "</s>", "type_id": 0}}], "special_tokens": {"</s>": {"id": "</s>", "ids": [95]}}})");
  folder.write("letters/tokenizer.json", tokenizer.dump());
  const prompting prompts(folder.path() / "letters", plain->config(), 0);
  const auto kept = [&](bool add_special) {
    return prepare(prompts, {.text = "ABCD", .add_special = add_special, .most_tokens = 2, .keeps_first = true},
                   params())
        .sequence.prompt;
  };
  EXPECT_EQ(kept(true), (std::vector<token_id>{'A' - ' ', 95})) << "as models that embed texts want it";
  EXPECT_EQ(kept(false), letters("AB"));
}

TEST(prompting, leaves_an_answer_its_room_where_a_prompt_is_to_be_what_the_context_holds) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder, 32);
  const auto kept = [&](std::int64_t answered) {
    const prompt_input input{.text = std::string(100, 'A'), .most_tokens = -1};
    const auto made = prepare(*prompts, input, params(answered)).sequence;
    EXPECT_EQ(prompts->encode(input, params(answered)), made.prompt) << "as it is counted before it is sent";
    return made;
  };
  EXPECT_EQ(kept(20).prompt.size(), 12u);
  EXPECT_EQ(kept(20).max_tokens, 20);
  EXPECT_EQ(kept(31).prompt.size(), 1u);
  for (const std::int64_t unbounded : {std::int64_t{32}, std::int64_t{INT32_MAX}}) {
    EXPECT_EQ(kept(unbounded).prompt.size(), 28u) << "an eighth is left where the context alone bounds the answer";
    EXPECT_EQ(kept(unbounded).max_tokens, 4);
  }
}

TEST(prompting, cuts_answers_to_the_context) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder, 10);
  const auto made = prepare(*prompts, text("ABCD"), params(1000));
  EXPECT_EQ(made.sequence.max_tokens, 6);
  EXPECT_EQ(made.sampling.max_tokens, 6);
  auto longer = params(1000);
  longer.min_tokens = 500;
  EXPECT_EQ(prepare(*prompts, text("ABCD"), longer).sampling.min_tokens, 6);
  EXPECT_EQ(refusal([&] { prepare(*prompts, text("ABCDEFGHIJ"), params()); }),
            "This model's maximum context length is 10 tokens, and the prompt has 10: shorten the prompt");
}

TEST(prompting, takes_a_text_of_the_whole_context_where_nothing_is_answered) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder, 10);
  sampling_params embedding = params(0), score = params(0);
  embedding.pooling = hidden_pooling::last;
  score.prompt_logprobs = 0;
  for (const sampling_params& each : {embedding, score}) {
    EXPECT_EQ(prepare(*prompts, text("ABCDEFGHIJ"), each).sequence.max_tokens, 0);
    EXPECT_NE(refusal([&] { prepare(*prompts, text("ABCDEFGHIJK"), each); }).find("the prompt has 11"),
              std::string::npos);
  }
}

TEST(prompting, refuses_many_answers_of_no_tokens) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder, 10);
  sampling_params score = params(0);
  score.prompt_logprobs = 0;
  EXPECT_EQ(refusal([&] { prompts->prepare(text("AB"), score, 2, request_priority::interactive); }),
            "2 answers of no tokens are asked for: use 1, or a larger max_tokens");
}

TEST(prompting, says_in_openais_words_that_a_text_cannot_fit) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder, 10);
  const std::string refused = refusal([&] { prepare(*prompts, text(std::string(1000, 'A')), params()); });
  EXPECT_TRUE(refused.starts_with("This model's maximum context length is 10 tokens, and the prompt has 1000 bytes"))
      << refused;
}

TEST(prompting, writes_chats_with_the_models_template) {
  const temp_folder folder;
  const auto prompts =
      letters_prompting(folder, 0, "{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}a:");
  const auto made =
      prepare(*prompts, {.chat = chat_input{.messages = R"([{"role":"user","content":"Hi"}])"}}, params());
  EXPECT_EQ(made.sequence.prompt, letters("u:Hi;a:"));
}

TEST(prompting, puts_a_chats_answer_of_a_form_into_the_last_channel) {
  const temp_folder folder;
  const auto prompts = letters_prompting(
      folder, 0, "{# <|channel|>analysis <|channel|>final #}{{ messages[0].content }}<|start|>assistant");
  prompt_input chat{.chat = chat_input{.messages = R"([{"role":"user","content":"Hi"}])"}};
  const auto with = [](const output_constraint& form) {
    auto sampling = params();
    sampling.constraint = form;
    return sampling;
  };
  const auto begun = [&](const prompt_input& input, const output_constraint& form) {
    return prepare(*prompts, input, with(form)).sequence.prompt;
  };
  const output_constraint form{constraint_kind::regex, "[ab]+"};
  EXPECT_EQ(begun(chat, {}), letters("Hi<|start|>assistant"));
  EXPECT_EQ(begun(chat, form), letters("Hi<|start|>assistant<|channel|>final<|message|>"));
  EXPECT_EQ(prompts->encode(chat, with(form)), begun(chat, form)) << "as it is counted before it is sent";
  EXPECT_EQ(begun(chat, {constraint_kind::calls, R"({"type":"object"})", "<x>", "</x>"}),
            letters("Hi<|start|>assistant"));
  EXPECT_EQ(begun(text("Hi"), form), letters("Hi")) << "which is no chat";
  chat.answer_begin = "<x>";
  EXPECT_EQ(begun(chat, form), letters("Hi<|start|>assistant<x>")) << "it has a beginning of its own";
}

TEST(prompting, knows_whose_answers_show_special_tokens) {
  const prompt_input chat{.chat = chat_input{.messages = "[]"}};
  for (const char* marks : {"<|channel|>analysis<|channel|>final", "[THINK][/THINK]", "<|channel>thought<channel|>",
                            "<|START_THINKING|><|END_THINKING|>"}) {
    const temp_folder folder;
    const auto prompts = letters_prompting(folder, 0, marks);
    EXPECT_TRUE(prompts->shows_special(chat)) << marks;
    EXPECT_FALSE(prompts->shows_special(text("Hi"))) << marks;
  }
  const temp_folder folder;
  EXPECT_FALSE(letters_prompting(folder, 0, "<think></think>")->shows_special(chat)) << "which are a text";
}

TEST(prompting, refuses_what_no_replica_could_answer) {
  const temp_folder folder;
  const auto prompts = letters_prompting(folder);
  const auto refused = [&](const prompt_input& input, const sampling_params& sampling = params()) {
    return refusal([&] { prepare(*prompts, input, sampling); });
  };
  EXPECT_EQ(refused({}), "the request has none: give one of a prompt, tokens and messages");
  EXPECT_NE(refused({"x", {1}, {}}).find("several"), std::string::npos);
  EXPECT_EQ(refused({{}, {96}, {}}), "the prompt names token 96: the model has tokens 0 to 95");
  EXPECT_NE(refused({{}, {-1}, {}}).find("token -1"), std::string::npos);
  EXPECT_EQ(
      refused({.chat = chat_input{.messages = "[]"}}),
      "letters: has no chat template, as chat_template.jinja in its folder would be: give the prompt as plain text")
      << "where the model's files lie is not for those who send requests";
  const auto cached = folder.path() / "models--Org--Letters" / "snapshots" / "c1899de289a0";
  std::filesystem::create_directories(cached.parent_path());
  std::filesystem::create_directory_symlink(folder.path() / "letters", cached);
  const prompting of_cache(cached, prompts->config(), 0);
  EXPECT_EQ(
      refusal([&] { prepare(of_cache, {.chat = chat_input{.messages = "[]"}}, params()); }),
      "Letters: has no chat template, as chat_template.jinja in its folder would be: give the prompt as plain text")
      << "and a digest says to nobody which model it is";
  EXPECT_NE(refused(text("x"), params(0)).find("max_tokens is 0"), std::string::npos);
  EXPECT_NE(refusal([&] { prompts->prepare(text("x"), params(), 0, request_priority::batch); }).find("0 answers"),
            std::string::npos);
  const temp_folder other;
  const auto chats = letters_prompting(other, 0, "{{ messages[0].content }}");
  const auto refused_chat = [&](const char* messages) {
    return refusal([&] { prepare(*chats, {.chat = chat_input{.messages = messages}}, params()); });
  };
  EXPECT_NE(refused_chat("[").find("messages"), std::string::npos);
  EXPECT_NE(refused_chat("[]").find("not empty"), std::string::npos);
  EXPECT_NE(refused_chat(R"([{"role":"user"}])").find("messages[0]"), std::string::npos);
  EXPECT_NE(refused_chat(R"([{"role":"user","content":""}])").find("empty prompt"), std::string::npos);
  const temp_folder third;
  const auto strict = letters_prompting(third, 0, "{{ raise_exception('no') }}");
  chat_input chat{.messages = R"([{"role":"user","content":"x"}])"};
  for (const char* variables : {"", R"({"mood":1})"}) {
    chat.variables = variables;
    const std::string why = refusal([&] { prepare(*strict, {.chat = chat}, params()); });
    EXPECT_TRUE(why.starts_with("letters: chat template")) << why;
    EXPECT_EQ(why.find(third.path().string()), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace troupe::test
