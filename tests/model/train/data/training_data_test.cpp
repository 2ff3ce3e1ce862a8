#include "model/train/data/training_data.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <regex>

#include <nlohmann/json.hpp>

#include "model/text/chat_format.hpp"
#include "tests/base/places.hpp"
#include "tests/base/refusal.hpp"
#include "tests/model/tokenizer/letters.hpp"
#include "tests/model/tokenizer/listed_tokens.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

/// A token is a byte; 256 begins and 257 ends a text, and ^ is how 257 is written.
class byte_tokenizer : public test::listed_tokens {
 public:
  byte_tokenizer() {
    add_bytes();
    texts_.insert(texts_.end(), {"<s>", "^"});
  }
  std::vector<token_id> encode(std::string_view text, encode_options options) const override {
    std::vector<token_id> tokens;
    if (options.add_special) tokens.push_back(256);
    for (const char c : text) tokens.push_back(options.parse_special && c == '^' ? 257 : static_cast<unsigned char>(c));
    return tokens;
  }
  bool is_special(token_id token) const override { return token > 255; }
  std::optional<token_id> bos() const override { return 256; }
  std::optional<token_id> eos() const override { return 257; }
};

constexpr std::string_view plain_template =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";
/// Forgets the answers before the last one, as templates with thoughts do.
constexpr std::string_view forgetful_template =
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and not loop.last %}-{% else %}"
    "{{ m.content }}{% endif %}|{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

data_format format_with(std::string_view chat) {
  data_format format;
  format.tokens = std::make_shared<const byte_tokenizer>();
  if (!chat.empty())
    format.chat = std::make_shared<const chat_format>(chat_sources{std::string(chat)}, "template", format.tokens);
  format.end_tokens = {257}, format.vocab_size = 258, format.row_length = 64;
  return format;
}

training_data read(const std::string& text, const data_format& format, const char* name = "d.jsonl") {
  const test::temp_folder folder;
  return read_training_data(folder.write(name, text), format);
}

std::string refusal_of(const std::string& text, const data_format& format, const char* name = "d.jsonl") {
  return test::refusal([&] { read(text, format, name); });
}

std::int64_t all_learned(const training_data& data) {
  std::int64_t count = 0;
  for (const training_example& example : data.examples)
    count += std::count(example.learned.begin() + 1, example.learned.end(), 1);
  return count;
}

std::string learned(const training_example& example) {
  std::string text;
  for (std::size_t i = 0; i < example.tokens.size(); ++i)
    if (example.learned[i]) text += example.tokens[i] == 257 ? '$' : static_cast<char>(example.tokens[i]);
  return text;
}

constexpr const char* two_questions =
    R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"},{"role":"user","content":"so"},{"role":"assistant","content":"no"}]})";

TEST(training_data, assistant_turns_are_learned) {
  const auto data = read(two_questions, format_with(plain_template));
  ASSERT_EQ(data.examples.size(), 1u);
  EXPECT_EQ(learned(data.examples[0]), "yes|no|");
}

TEST(training_data, chats_are_learned_as_they_are_served) {
  constexpr std::string_view calling =
      "{% for m in messages %}<{{ m.role }}>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
      "{{ c.function.arguments.x }}{% endfor %}|{% endfor %}";
  const auto data = read(
      R"({"messages":[{"role":"developer","content":"be"},{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":7}"}}]}]})",
      format_with(calling));
  const std::string text = format_with(calling).tokens->decode(data.examples.at(0).tokens, false);
  EXPECT_EQ(text, "<system>be|<assistant>7|");
}

/// As Mistral's template refuses it.
TEST(training_data, questions_behind_a_result_are_put_into_it_where_the_template_refuses_them_there) {
  const std::string strict =
      "{% for m in messages[1:] %}{% if m.role == 'user' and messages[loop.index0].role == 'tool' %}"
      "{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}" +
      std::string(plain_template);
  const data_format format = format_with(strict);
  const auto data = read(
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"tool","content":"c"},)"
      R"({"role":"user","content":"d"},{"role":"assistant","content":"e"}]})",
      format);
  ASSERT_EQ(data.examples.size(), 1u);
  EXPECT_EQ(format.tokens->decode(data.examples[0].tokens, false), "<user>a|<assistant>b|<tool>c\nd|<assistant>e|");
  EXPECT_EQ(learned(data.examples[0]), "b|e|");
}

TEST(training_data, roles_that_nobody_knows_are_refused) {
  const std::string line = R"({"messages":[{"role":"usr","content":"a"},{"role":"assistant","content":"b"}]})";
  EXPECT_THAT(refusal_of("\n" + line, format_with(plain_template)),
              testing::EndsWith("d.jsonl:2: messages[0].role is \"usr\": use system, user, assistant or tool"));
}

TEST(training_data, weight_leaves_turns_out) {
  const auto data = read(
      R"({"messages":[{"role":"assistant","content":"a","weight":0},{"role":"user","content":[{"type":"text","text":"b"}]},{"role":"assistant","content":"c","weight":1}]})",
      format_with(plain_template));
  EXPECT_EQ(learned(data.examples.at(0)), "c|");
  const auto unset =
      read(R"({"messages":[{"role":"assistant","content":"a","weight":null}]})", format_with(plain_template));
  EXPECT_EQ(learned(unset.examples.at(0)), "a|");
  EXPECT_THAT(
      refusal_of(R"({"messages":[{"role":"assistant","content":"a","weight":0.5}]})", format_with(plain_template)),
      testing::HasSubstr("weight"));
}

TEST(training_data, templates_that_rewrite_earlier_turns_make_an_example_of_each) {
  const auto data = read(two_questions, format_with(forgetful_template));
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(learned(data.examples[0]), "yes|");
  EXPECT_EQ(learned(data.examples[1]), "no|");
}

TEST(training_data, examples_name_the_line_or_document_that_they_are_of) {
  const std::string chats = two_questions + std::string("\n\n") + two_questions;
  EXPECT_EQ(read(chats, format_with(forgetful_template)).sources, (std::vector<std::size_t>{1, 1, 3, 3}));
  const std::string text = std::string(150, 'y') + "<|endoftext|>z";
  EXPECT_EQ(read(text, format_with(""), "d.txt").sources, (std::vector<std::size_t>{1, 1, 1, 2}));
}

/// Writes the system message with the last question, as Mistral-Nemo's does.
constexpr std::string_view moving_template =
    "{% for m in messages %}{% if m.role == 'user' %}[{% if loop.last and messages[0].role == 'system' %}"
    "{{ messages[0].content }} {% endif %}{{ m.content | trim }}]{% elif m.role == 'assistant' %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}(){% endfor %}^{% endif %}{% endfor %}";

TEST(training_data, answers_are_learned_behind_the_prompt_that_serving_uses) {
  const data_format format = format_with(moving_template);
  const auto text = [&](const training_example& of) { return format.tokens->decode(of.tokens, false); };
  const std::string asked = R"({"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi "})";
  const auto data = read(
      asked +
          R"(,{"role":"assistant","content":" yes"},{"role":"user","content":"so"},{"role":"assistant","content":"no"}]})",
      format);
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(text(data.examples[0]), "[be hi] yes");
  EXPECT_EQ(learned(data.examples[0]), " yes$");
  EXPECT_EQ(text(data.examples[1]), "[hi] yes[be so]no");
  EXPECT_EQ(learned(data.examples[1]), "no$");
  const auto calls = read(
      asked + R"(,{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]})",
      format);
  EXPECT_EQ(text(calls.examples.at(0)), "[be hi]f()");
  EXPECT_EQ(learned(calls.examples.at(0)), "f()$");
}

TEST(training_data, answers_that_do_not_go_on_from_the_prompt_are_refused) {
  const std::string line = R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]})";
  const auto with_prompt = [](const std::string& prompt) {
    return "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}{% if add_generation_prompt %}" + prompt +
           "{% endif %}";
  };
  EXPECT_EQ(refusal_of(line, format_with(with_prompt("<assistant>"))), "");
  EXPECT_THAT(refusal_of(line, format_with(with_prompt("<assistant><think>"))),
              testing::HasSubstr("behind the prompt that serving uses"))
      << "an answer within a thought";
  const std::string behind_call =
      R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"weight":0,)"
      R"("tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},{"role":"assistant","content":"yes"}]})";
  EXPECT_THAT(refusal_of(behind_call, format_with(with_prompt("<assistant><think>"))),
              testing::HasSubstr("behind the prompt that serving uses"))
      << "behind a message without text";
  EXPECT_THAT(
      refusal_of(line, format_with("{% if add_generation_prompt %}{{ messages[0].content }}<assistant>{% else %}"
                                   "<assistant>{{ messages[1].content }}{% endif %}")),
      testing::HasSubstr("behind the prompt that serving uses"))
      << "without its question";
}

TEST(training_data, answers_are_found_where_the_template_closes_the_message_before_otherwise) {
  // As Hermes' does with a tool's.
  const data_format format = format_with(
      "{% for m in messages %}{% if m.role == 'tool' %}<tool>{{ m.content }}{{ '|' if loop.last else ' |' }}"
      "{% else %}<{{ m.role }}>{{ m.content }}|{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}");
  const auto data = read(
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"c"},{"role":"tool","content":"t"},)"
      R"({"role":"assistant","content":"<assistant>"}]})",
      format);
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(learned(data.examples[0]), "c|");
  EXPECT_EQ(format.tokens->decode(data.examples[1].tokens, false),
            "<user>q|<assistant>c|<tool>t|<assistant><assistant>|");
  EXPECT_EQ(learned(data.examples[1]), "<assistant>|");
}

TEST(training_data, dialogues_with_tools_are_learned_in_the_template_of_hermes) {
  const auto file = test::shared_data / "chat_templates" / "templates.json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "absent: " << file;
  const auto all = nlohmann::json::parse(test::read_file(file));
  data_format format = format_with(all["NousResearch-Hermes-3-Llama-3.1-8B-tool_use"].get<std::string>());
  format.row_length = format.context = 4096;
  const auto data = read(
      R"({"messages":[{"role":"user","content":"Weather in Rome?"},{"role":"assistant","content":null,"tool_calls":)"
      R"([{"type":"function","function":{"name":"get","arguments":"{\"city\":\"Rome\"}"}}]},)"
      R"({"role":"tool","content":"sun"},{"role":"assistant","content":"It is sunny."}],"tools":[{"type":"function",)"
      R"("function":{"name":"get","description":"d","parameters":{"type":"object","properties":{"city":)"
      R"({"type":"string","description":"c"}}}}}]})",
      format);
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(data.losses.unwritten, 0);
  EXPECT_THAT(learned(data.examples[0]), testing::StartsWith("<tool_call>\n{\"name\": \"get\""));
  EXPECT_EQ(learned(data.examples[1]), "It is sunny.<|im_end|>\n");
}

constexpr const char* weather_call =
    R"({"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":)"
    R"([{"function":{"name":"f","arguments":"ARGUMENTS"}}]}]})";

TEST(training_data, calls_that_the_template_does_not_write_are_refused) {
  const std::string line = std::regex_replace(weather_call, std::regex("ARGUMENTS"), "{}");
  EXPECT_THAT(refusal_of(line, format_with(plain_template)),
              testing::HasSubstr("d.jsonl:1: messages[1]: the chat template does not write its tool_calls"));
  EXPECT_EQ(refusal_of(line, format_with(moving_template)), "");
}

TEST(training_data, arguments_of_calls_that_are_no_object_are_refused) {
  for (const char* bad : {"{bad", "[1]", "7"})
    EXPECT_THAT(
        refusal_of(std::regex_replace(weather_call, std::regex("ARGUMENTS"), bad), format_with(moving_template)),
        testing::HasSubstr("messages[1].tool_calls: the arguments of a call should be a JSON object"))
        << bad;
}

TEST(training_data, calls_of_no_function_are_refused) {
  for (const char* bad : {R"({})", R"({"name":""})", R"({"name":7})"})
    EXPECT_THAT(
        refusal_of(R"({"messages":[{"role":"assistant","tool_calls":[{"function":)" + std::string(bad) + "}]}]}",
                   format_with(moving_template)),
        testing::HasSubstr("messages[0].tool_calls: a call should have a function with a name"))
        << bad;
}

/// `tools` is JSON.
std::string line_with_tools(const std::string& tools) {
  return R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}],"tools":)" + tools + "}";
}

const std::string naming_tools =
    "{% if tools is none %}none{% endif %}{% for t in tools or [] %}{{ t.function.name }}{% endfor %}" +
    std::string(plain_template);

TEST(training_data, tools_may_be_a_list_or_its_text) {
  const data_format format = format_with(naming_tools);
  const auto text_with = [&](const std::string& tools) {
    return format.tokens->decode(read(line_with_tools(tools), format).examples.at(0).tokens, false);
  };
  const std::string list = R"([{"type":"function","function":{"name":"f","parameters":{}}}])";
  EXPECT_EQ(text_with(list), "f<user>a|<assistant>b|");
  EXPECT_EQ(text_with(nlohmann::json(list).dump()), "f<user>a|<assistant>b|") << "as TRL has it";
  for (const char* none : {"null", "[]", R"("")", R"(" ")", R"("null")", R"("[]")"})
    EXPECT_EQ(text_with(none), "none<user>a|<assistant>b|") << none;
}

TEST(training_data, tools_that_are_none_are_refused) {
  for (const char* bad : {R"({"type":"function","function":{"name":"f"}})", "7", "[7]", R"([{"name":"f"}])",
                          R"([{"type":"function","function":{}}])", R"("[{\"name\":\"f\"}]")"})
    EXPECT_THAT(
        refusal_of(line_with_tools(bad), format_with(naming_tools)),
        testing::EndsWith(R"(d.jsonl:1: "tools" should be a list of {"type": "function", "function": {"name": …}})"))
        << bad;
  EXPECT_THAT(refusal_of(line_with_tools(R"("[{")"), format_with(naming_tools)),
              testing::HasSubstr(R"(d.jsonl:1: "tools": is no valid JSON)"));
}

TEST(training_data, messages_that_the_template_does_not_write_are_counted) {
  const auto line = [](const std::string& system) {
    return R"({"messages":[{"role":"system","content":")" + system +
           R"("},{"role":"user","content":"hi"},{"role":"assistant","content":"yes"}]})" + "\n";
  };
  constexpr std::string_view of_two =
      "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}|{% endif %}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  const std::string lines = line("be") + line("") + two_questions;
  EXPECT_EQ(read(lines, format_with(of_two)).losses.unwritten, 1);
  EXPECT_EQ(read("{\"text\":\"ab\"}\n" + lines, format_with(of_two)).losses.chats, 3);
  EXPECT_EQ(read(lines, format_with(plain_template)).losses.unwritten, 0);
  EXPECT_EQ(read(line("be"), format_with(moving_template)).losses.unwritten, 0) << "before the answer it is there";
}

TEST(training_data, chats_without_an_end_behind_any_answer_are_counted) {
  EXPECT_EQ(read(two_questions, format_with(plain_template)).losses.unended, 1);
  EXPECT_EQ(read(two_questions, format_with(forgetful_template)).losses.unended, 1);
  EXPECT_EQ(read(two_questions, format_with(moving_template)).losses.unended, 0);
  const std::string between =
      "{% for m in messages %}{% if m.role == 'user' %}^{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}";
  EXPECT_EQ(read(two_questions, format_with(between)).losses.unended, 1) << "it ends no answer";
  data_format format = format_with(plain_template);
  format.end_tokens = {257, '|'};
  EXPECT_EQ(read(two_questions, format).losses.unended, 0) << "any of them ends one";
  format.end_tokens.clear();
  EXPECT_EQ(read(two_questions, format).losses.unended, 0) << "nothing ends answers";
  EXPECT_EQ(read("{\"text\":\"ab\"}", format_with(plain_template)).losses.unended, 0);
}

TEST(training_data, completions_are_learned_with_their_end) {
  const auto data = read("{\"prompt\":\"2+2=\",\"completion\":\"4\"}\n\n{\"text\":\"all\"}", format_with(""));
  ASSERT_EQ(data.examples.size(), 2u);
  EXPECT_EQ(learned(data.examples[0]), "4$");
  EXPECT_EQ(data.examples[0].tokens.front(), 256);
  EXPECT_EQ(all_learned(data), 2 + 4);
}

TEST(training_data, special_tokens_are_tokens_in_lines_and_letters_in_plain_text) {
  const auto ends = [](const training_example& of) { return std::count(of.tokens.begin(), of.tokens.end(), 257); };
  const auto lines = read("{\"text\":\"a^b\"}\n{\"prompt\":\"a^\",\"completion\":\"b\"}", format_with(""));
  EXPECT_EQ(ends(lines.examples.at(0)), 2);
  EXPECT_EQ(ends(lines.examples.at(1)), 2);
  EXPECT_EQ(ends(read("a^b", format_with(""), "d.txt").examples.at(0)), 0);
}

TEST(training_data, bad_lines_are_reported_by_number) {
  const std::string good = "{\"prompt\":\"a\",\"completion\":\"b\"}\n";
  EXPECT_THAT(refusal_of(good + good + "{\"prompt\":\"a\"\n" + good + "[1]\n", format_with("")),
              testing::AllOf(testing::HasSubstr("d.jsonl:3: "), testing::HasSubstr("(and 1 more bad line: 5)")));
  EXPECT_THAT(refusal_of(good + "{\"messages\":[]}\n", format_with("")), testing::HasSubstr("d.jsonl:2: "));
  EXPECT_THAT(refusal_of(good + good.substr(0, 12), format_with("")), testing::HasSubstr("d.jsonl:2: "));
  EXPECT_THAT(refusal_of(good + "{\"input\":1,\"output\":2}", format_with("")),
              testing::EndsWith("nor \"text\", but \"input\", \"output\""));
  EXPECT_THAT(refusal_of(R"({"prompt":"a","temperature":1})", format_with("")),
              testing::HasSubstr("d.jsonl:1: has no \"completion\""));
  EXPECT_THAT(refusal_of(R"({"completion":"a"})", format_with("")), testing::HasSubstr("has no \"prompt\""));
  EXPECT_THAT(refusal_of(R"({"prompt":"a","completion":1})", format_with("")),
              testing::HasSubstr("\"completion\" should be a text"));
  EXPECT_THAT(refusal_of(R"({"prompt":[{"role":"user","content":"a"}],"completion":"b"})", format_with("")),
              testing::HasSubstr("write a chat as \"messages\""));
  EXPECT_THAT(refusal_of("{\"text\":\"a\"},", format_with("")),
              testing::HasSubstr("d.jsonl:1: the line: is no valid JSON: parse error at column 13: "));
  EXPECT_THAT(refusal_of("{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}", format_with(plain_template)),
              testing::HasSubstr("assistant"));
  EXPECT_THAT(refusal_of("\n", format_with("")), testing::HasSubstr("nothing to learn"));
}

TEST(training_data, preferences_are_refused) {
  const std::string chat = R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}])";
  const std::string completion = R"({"prompt":"a","completion":"b")", dpo = R"({"prompt":"a","chosen":"b")";
  for (const std::string& bad :
       {completion + R"(,"label":false})", completion + R"(,"label":true})", completion + R"(,"rejected":"c"})",
        chat + R"(,"chosen":[],"rejected":[]})", chat + R"(,"preferred_output":[]})", dpo + R"(,"rejected":"c"})",
        std::string(R"({"input":{"messages":[]},"preferred_output":[],"non_preferred_output":[]})")})
    EXPECT_THAT(refusal_of("\n" + bad, format_with(plain_template)),
                testing::HasSubstr("d.jsonl:2: is preference data: only answers to be learned are taken"))
        << bad;
  for (const std::string& good : {completion + R"(,"label":"sums","chosen":null})", completion + R"(,"label":null})",
                                  chat + R"(,"label":true})", std::string(R"({"text":"a","label":true})")})
    EXPECT_EQ(refusal_of(good, format_with(plain_template)), "") << good;
}

TEST(training_data, lines_of_json_are_lines_under_any_name) {
  const std::string lines = "{\"text\":\"ab\"}\n{\"text\":\"cd\"}";
  for (const char* name : {"d.json", "d.jsonl", "d.txt", "d"}) {
    EXPECT_EQ(read(lines, format_with(""), name).examples.size(), 2u) << name;
    EXPECT_EQ(read("\xEF\xBB\xBF" + lines, format_with(""), name).examples.size(), 2u) << name;
  }
}

TEST(training_data, one_list_of_json_is_not_taken_for_plain_text) {
  for (const char* name : {"d.json", "d.txt"})
    for (const char* text : {"[{\"text\":\"ab\"}]", "\xEF\xBB\xBF[\n {\n  \"text\": \"ab\"\n }\n]\n"})
      EXPECT_THAT(refusal_of(text, format_with(""), name), testing::HasSubstr("write one object a line")) << name;
  EXPECT_THAT(refusal_of("[\"ab\"]", format_with(""), "d.json"), testing::HasSubstr("write one object a line"));
  EXPECT_EQ(refusal_of("[Enter Hamlet]", format_with(""), "d.txt"), "");
}

TEST(training_data, lines_of_json_behind_a_bad_beginning_are_not_taken_for_plain_text) {
  const std::string line = "{\"prompt\":\"a\",\"completion\":\"b\"}\n";
  const auto refused = [&](const std::string& text) { return refusal_of(text, format_with(""), "d.txt"); };
  for (const char* torn : {"letion\":\"b\"}\n", "# a comment\n", "\"a\"\n"})
    EXPECT_THAT(refused(torn + line + line), testing::EndsWith("d.txt:1: is no JSON, but line 2 is an example: mend "
                                                               "what comes before it, or leave it out"));
  EXPECT_THAT(refused("# of\n\n# two\n{\"text\":\"a\"}\n"), testing::HasSubstr("line 4 is an example"));
  EXPECT_THAT(refused("#\r\n{\"messages\":[]}\r\n"), testing::HasSubstr("line 2 is an example"));
  for (const char* text : {"as {\"text\":\"a\"}\n", "a\n{\"prompt\":\"b\"}\n", "a\n{\"text\":\n"})
    EXPECT_EQ(refused(text), "") << "braces alone make no example: " << text;
}

TEST(training_data, objects_of_several_lines_are_refused_with_a_remedy) {
  for (const char* name : {"d.jsonl", "d.json", "d.txt"})
    EXPECT_THAT(refusal_of("{\r\n  \"text\": \"ab\"\n}\n", format_with(""), name), testing::HasSubstr("(jq -c .)"))
        << name;
}

TEST(training_data, plain_text_begins_behind_a_byte_order_mark) {
  EXPECT_EQ(learned(read("\xEF\xBB\xBFyes", format_with(""), "d.txt").examples.at(0)),
            learned(read("yes", format_with(""), "d.txt").examples.at(0)));
}

TEST(training_data, tables_are_not_taken_for_plain_text) {
  for (const char* name : {"d.csv", "d.CSV", "d.tsv"})
    EXPECT_THAT(refusal_of("prompt,completion\na,b\n", format_with(""), name), testing::HasSubstr("is a table"))
        << name;
}

TEST(training_data, what_is_no_text_is_refused) {
  const std::string packed = "\x1f\x8b\x08", line = "{\"text\":\"ab\"}\n", utf16 = "\xff\xfe{";
  EXPECT_THAT(refusal_of(packed, format_with(""), "d.jsonl.gz"), testing::HasSubstr("d.jsonl.gz:1: is no UTF-8"));
  EXPECT_THAT(refusal_of("good\n\xe4\n", format_with(""), "d.txt"), testing::HasSubstr("d.txt:2: is no UTF-8"));
  EXPECT_THAT(refusal_of(utf16, format_with("")), testing::HasSubstr("d.jsonl:1: is no UTF-8"));
  EXPECT_THAT(refusal_of(line + "{\"text\":\"\xe4\"}\n", format_with("")),
              testing::HasSubstr("d.jsonl:2: is no UTF-8"));
}

TEST(training_data, the_older_form_of_calls_is_refused) {
  constexpr std::string_view chat = R"("messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y")";
  EXPECT_THAT(
      refusal_of(fmt::format("{{{},\"function_call\":{{\"name\":\"f\"}}}}]}}", chat), format_with(plain_template)),
      testing::HasSubstr("use tool_calls"));
  EXPECT_THAT(
      refusal_of(fmt::format("{{{}}}],\"functions\":[{{\"name\":\"f\"}}]}}", chat), format_with(plain_template)),
      testing::HasSubstr("use \"tools\""));
}

TEST(training_data, long_examples_are_cut_and_counted) {
  const std::string longer(100, 'x');
  const auto data = read("{\"prompt\":\"a\",\"completion\":\"" + longer + "\"}", format_with(""));
  EXPECT_EQ(data.losses.shortened, 1);
  EXPECT_EQ(data.examples.at(0).rows(), 64);
  const std::string beyond = "{\"prompt\":\"" + longer + "\",\"completion\":\"b\"}";
  data_format format = format_with("");
  EXPECT_THAT(refusal_of(beyond, format),
              testing::EndsWith("beyond 64 tokens in all examples: use longer rows (length)"));
  format.context = format.row_length;
  EXPECT_THAT(refusal_of(beyond, format), testing::EndsWith("beyond 64 tokens in all examples: give shorter ones"));
  const auto others = read(beyond + "\n{\"prompt\":\"a\",\"completion\":\"b\"}", format);
  EXPECT_EQ(others.examples.size(), 1u);
  EXPECT_EQ(others.losses.shortened, 1) << "one is left out";
}

TEST(training_data, turns_beyond_a_row_are_left_out_and_counted) {
  data_format format = format_with(forgetful_template);
  format.row_length = 40;
  const auto data = read(two_questions, format);
  ASSERT_EQ(data.examples.size(), 1u);
  EXPECT_EQ(learned(data.examples[0]), "yes|");
  EXPECT_EQ(data.losses.shortened, 1);
  format.row_length = 19;
  EXPECT_THAT(refusal_of(two_questions, format), testing::HasSubstr("beyond 19 tokens"));
}

TEST(training_data, a_long_chat_is_written_no_oftener_than_a_row_has_turns) {
  class counting_tokenizer final : public byte_tokenizer {
   public:
    std::vector<token_id> encode(std::string_view text, encode_options options) const override {
      encoded += text.size();
      return byte_tokenizer::encode(text, options);
    }
    mutable std::size_t encoded = 0;
  };
  const auto tokens = std::make_shared<const counting_tokenizer>();
  const auto chat_of = [](int turns) {
    std::string messages;
    for (int i = 0; i < turns; ++i)
      messages += R"({"role":"user","content":"hi"},{"role":"assistant","content":"yes"},)";
    messages.back() = ']';
    return "{\"messages\":[" + messages + "}";
  };
  for (const std::string_view chat : {plain_template, forgetful_template}) {
    data_format format = format_with(chat);
    format.tokens = tokens;
    tokens->encoded = 0;
    const auto data = read(chat_of(500), format);
    EXPECT_EQ(data.examples.size(), chat == plain_template ? 1u : 3u);
    EXPECT_EQ(data.losses.shortened, chat == plain_template ? 1 : 498);
    EXPECT_LT(tokens->encoded, 500u * 24 + 1000) << "the whole chat, and little more";
  }
  EXPECT_THAT(refusal_of(chat_of(5001), format_with(plain_template)), testing::HasSubstr("use at most 10000"));
}

TEST(training_data, plain_text_is_cut_into_rows_and_every_token_is_a_target_once) {
  const auto data = read(std::string(150, 'y') + "<|endoftext|>z", format_with(""), "d.txt");
  ASSERT_EQ(data.examples.size(), 4u);
  EXPECT_EQ(all_learned(data), 151 + 1);
}

TEST(training_data, what_is_learned_ends_as_answers_end) {
  const test::temp_folder folder;
  folder.write("tokenizer.json", test::letters_tokenizer().dump());
  model_config config;
  config.vocab_size = 96;
  const auto last = [&](std::vector<std::int32_t> eos_tokens, const std::string& of_tokenizer) {
    folder.write("tokenizer_config.json", of_tokenizer);
    config.eos_tokens = std::move(eos_tokens);
    const data_format format = data_format_of(folder.path(), config, 64);
    return read(R"({"prompt":"a","completion":"b"})", format).examples.at(0).tokens.back();
  };
  EXPECT_EQ(last({}, R"({"eos_token": "</s>"})"), 95);
  EXPECT_EQ(last({7, 8}, R"({"eos_token": "</s>"})"), 95) << "it ends answers as well";
  EXPECT_EQ(last({7, 8}, "{}"), 7);
}

/// Head and trainer read data on different days and in different zones, and have to make the same of it.
TEST(training_data, dates_that_the_template_writes_are_the_same_everywhere_and_on_every_day) {
  const test::temp_folder folder;
  folder.write("tokenizer.json", test::letters_tokenizer().dump());
  folder.write("tokenizer_config.json", "{}");
  folder.write("chat_template.jinja",
               "{{ strftime_now('%d-%b-%Y') }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
               "{% if add_generation_prompt %}<assistant>{% endif %}");
  model_config config;
  config.vocab_size = 96;
  const std::string line = R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]})";
  for (const char* zone : {"UTC", "EAST-14", "WEST12"}) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    const data_format format = data_format_of(folder.path(), config, 64);
    EXPECT_EQ(format.tokens->decode(read(line, format).examples.at(0).tokens, false), "26-Jul-2024<user>a<assistant>b")
        << zone;
  }
  ::unsetenv("TZ");
  ::tzset();
}

TEST(training_data, a_summary_says_what_the_examples_come_to) {
  const test::temp_folder folder;
  const std::string long_line = R"({"text":")" + std::string(100, 'a') + "\"}\n";
  const auto file = folder.write("d.jsonl", std::string(two_questions) + "\n" + long_line);
  const auto format = format_with(plain_template);
  const auto data = read_training_data(file, format);
  const auto summary = summarize_training_data(file, format);
  EXPECT_EQ(summary.examples, static_cast<std::int64_t>(data.examples.size()));
  EXPECT_EQ(summary.learned_tokens, all_learned(data));
  EXPECT_EQ(summary.losses.shortened, 1);
  EXPECT_EQ(summary.fingerprint, data.fingerprint);
  EXPECT_NE(test::refusal([&] { summarize_training_data(folder.write("e.jsonl", "\n"), format); }), "");
}

TEST(training_data, documents_without_tokens_are_left_out) {
  /// Drops what it does not know, and begins no text with anything.
  class letter_tokenizer final : public byte_tokenizer {
   public:
    std::vector<token_id> encode(std::string_view text, encode_options) const override {
      std::vector<token_id> tokens;
      for (const char c : text)
        if (c != ' ') tokens.push_back(static_cast<unsigned char>(c));
      return tokens;
    }
  };
  data_format format = format_with("");
  format.tokens = std::make_shared<const letter_tokenizer>();
  EXPECT_EQ(read("   <|endoftext|>abc<|endoftext|>", format, "d.txt").examples.size(), 1u);
}

}  // namespace
}  // namespace troupe
