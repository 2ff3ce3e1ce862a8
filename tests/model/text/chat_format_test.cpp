#include "model/text/chat_format.hpp"

#include <chrono>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/field_error.hpp"
#include "model/text/chat_messages.hpp"
#include "model/text/model_text.hpp"
#include "tests/model/formats/fixtures.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using test::refusal;
using ::testing::HasSubstr;

json prepared(const char* messages) {
  json list = json::parse(messages);
  prepare_messages(list);
  return list;
}

std::string rendered(const chat_sources& sources, const chat_input& chat) {
  return chat_format(sources, "template", no_tokenizer()).render(chat);
}

const std::string greeting = R"([{"role": "user", "content": "hi"}])";

TEST(chat_messages, have_parts_put_together_and_arguments_opened) {
  const json list = prepared(
      R"([{"role": "developer", "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "kind"}]},
          {"role": "assistant", "content": null, "tool_calls":
            [{"function": {"name": "w", "arguments": "{\"city\": \"Paris\"}"}}, {"function": {"name": "v", "arguments": ""}},
             {"function": {"name": "v", "arguments": null}}, {"function": {"name": "v"}}]}])");
  EXPECT_EQ(list[0], json({{"role", "system"}, {"content", "Be\nkind"}})) << "a line for each part";
  EXPECT_EQ(list[1]["content"], "") << "which templates can add to";
  EXPECT_EQ(list[1]["tool_calls"][0]["function"]["arguments"], json({{"city", "Paris"}}));
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(list[1]["tool_calls"][i]["function"]["arguments"], json::object()) << i;
  const json repeated = prepared(
      R"([{"role": "assistant", "tool_calls": [{"function": {"name": "w", "arguments": "{\"a\": 1, \"a\": 2}"}}]}])");
  EXPECT_EQ(repeated[0]["tool_calls"][0]["function"]["arguments"], json({{"a", 2}}));
}

TEST(chat_messages, have_all_parts_that_are_text) {
  const auto content = [](const std::string& parts) {
    return prepared((R"([{"role": "user", "content": [)" + parts + "]}]").c_str())[0]["content"];
  };
  EXPECT_EQ(content(R"("a", "b")"), "a\nb") << "as LangChain sends them";
  EXPECT_EQ(content(R"({"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}, {"text": "c"})"),
            "a\nb\nc");
  EXPECT_EQ(
      content(R"("a", {"type": "refusal", "refusal": null}, {"type": "text"}, "", {"type": "text", "text": "b"})"),
      "a\nb")
      << "what says nothing has no line";
  EXPECT_EQ(content(R"({"type": "text", "text": null})"), "");
  EXPECT_EQ(content(""), "");
}

TEST(chat_messages, have_thoughts_among_parts_apart_from_what_is_said) {
  const auto answer = [](const std::string& fields) {
    const std::string parts = R"([{"type": "thinking", "thinking": "b"}, "a", {"type": "thinking", "thinking": "c"}])";
    return prepared((R"([{"role": "assistant", "content": )" + parts + fields + "}]").c_str())[0];
  };
  const json both{{"role", "assistant"}, {"content", "a"}, {"reasoning_content", "b\nc"}};
  EXPECT_EQ(answer(""), both);
  EXPECT_EQ(answer(R"(, "reasoning_content": "b\nc")"), both) << "which are sent once more";
}

TEST(chat_format, gives_thoughts_to_a_template_that_calls_them_thinking) {
  chat_sources sources;
  sources.usual =
      "{% for m in messages %}{% if m.tool_calls and m.content and m.thinking %}both{% endif %}"
      "{{ m.content }}({# message.thinking #}{{ m.thinking }}){% endfor %}"
      "{% for tool in tools or [] %}{% set tool = tool.function %}{{ '#' + tool.description + '#' }}{% endfor %}";
  const std::string calls = R"("tool_calls": [{"function": {"name": "w", "arguments": "{}"}}])";
  EXPECT_EQ(rendered(sources, {R"([{"role": "assistant", "content": "a", "reasoning_content": "b"}])"}), "a(b)");
  EXPECT_EQ(rendered(sources, {R"([{"role": "assistant", "content": null, "reasoning": "b", )" + calls + "}]"}), "(b)");
  EXPECT_EQ(rendered(sources, {R"([{"role": "assistant", "content": "a", "reasoning_content": "b", )" + calls + "}]"}),
            "(b\na)")
      << "which takes one of both";
  EXPECT_EQ(rendered(sources, {greeting, R"([{"type": "function", "function": {"name": "w"}}])"}), "hi()##");
}

/// As Unsloth's does.
TEST(chat_format, gives_no_thoughts_of_earlier_answers_to_a_template_that_takes_these_for_thoughts) {
  const std::string source =
      "{% for message in messages %}{% if message.role == 'assistant' %}{% if loop.last %}({{ message.thinking }})"
      "{% endif %}{{ 'analysis ' if 'thinking' in message and not message.tool_calls and not loop.last }}{% endif %}"
      "{{ message.content or message.thinking }} {% endfor %}";
  const chat_input chat{.messages = R"([{"role": "user", "content": "a"},
      {"role": "assistant", "content": null, "reasoning_content": "b",
       "tool_calls": [{"function": {"name": "w", "arguments": "{}"}}]},
      {"role": "assistant", "content": "c", "reasoning_content": "d"}, {"role": "user", "content": "e"},
      {"role": "assistant", "content": "f", "reasoning_content": "g"}])"};
  EXPECT_EQ(rendered({.usual = source + "{# <|channel|>analysis #}"}, chat), "a b c e (g)f ");
  EXPECT_EQ(rendered({.usual = source}, chat), "a b analysis c e (g)f ");
}

TEST(chat_messages, have_thoughts_under_the_name_that_templates_read) {
  const auto thought = [](const std::string& fields) {
    const std::string list = R"([{"role": "assistant", "content": "a", )" + fields + "}]";
    return prepared(list.c_str())[0].value("reasoning_content", "");
  };
  EXPECT_EQ(thought(R"("reasoning": "b")"), "b");
  EXPECT_EQ(thought(R"("reasoning": "b", "reasoning_content": null)"), "b");
  EXPECT_EQ(thought(R"("reasoning": "b", "reasoning_content": "c")"), "c");
  EXPECT_EQ(thought(R"("reasoning": {"effort": "low"})"), "");
}

TEST(chat_messages, keep_no_fields_that_say_nothing) {
  const json plain = prepared(R"([{"role": "assistant", "content": "hello"}])");
  EXPECT_EQ(prepared(R"([{"role": "assistant", "content": "hello", "tool_calls": null, "refusal": null}])"), plain);
  EXPECT_EQ(prepared(R"([{"role": "assistant", "content": "hello", "tool_calls": []}])"), plain);
  EXPECT_EQ(prepared(R"([{"role": "assistant", "content": [{"type": "refusal", "refusal": "hello"}]}])"), plain);
}

/// A client's message of some megabytes must not hold up all others.
TEST(chat_messages, have_the_names_of_functions_that_results_are_of) {
  const json list = prepared(
      R"([{"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "w", "arguments": "{}"}},
           {"id": "2", "function": {"name": "v", "arguments": "{}"}}, {"function": {"arguments": "{}"}}]},
          {"role": "tool", "content": "a", "tool_call_id": "2"}, {"role": "tool", "content": "b", "tool_call_id": "1"},
          {"role": "tool", "content": "c", "tool_call_id": "1", "name": "mine"},
          {"role": "tool", "content": "d", "tool_call_id": "3"}, {"role": "tool", "content": "e"},
          {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "u"}}]},
          {"role": "tool", "content": "f", "tool_call_id": "1"}])");
  std::string names;
  for (const json& message : list) names += message.value("name", "-");
  EXPECT_EQ(names, "-vwmine---u");
}

TEST(chat_messages, lose_many_fields_that_say_nothing_as_fast_as_few) {
  json message = json::object_t{{"role", "user"}, {"content", "hi"}};
  for (int i = 0; i < 300'000; ++i)
    message.get_ref<json::object_t&>().emplace_back("field that says nothing " + std::to_string(i), nullptr);
  json list = json::array({std::move(message)});
  const auto begin = std::chrono::steady_clock::now();
  prepare_messages(list);
  EXPECT_EQ(list, json::parse(greeting));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST(chat_messages, say_which_one_is_wrong) {
  const auto says = [](const char* messages) { return refusal([&] { prepared(messages); }); };
  EXPECT_THAT(says("[]"), HasSubstr("messages should be a list"));
  EXPECT_THAT(says(R"([5])"), HasSubstr("messages[0] should be an object with a role"));
  EXPECT_THAT(says(R"([{"role": "user"}])"), HasSubstr("messages[0] has no content"));
  EXPECT_THAT(says(R"([{"role": "user", "content": 5}])"), HasSubstr("messages[0].content"));
  const auto says_of_part = [&](const std::string& part) {
    return says((R"([{"role": "user", "content": ["x", )" + part + "]}]").c_str());
  };
  EXPECT_EQ(says_of_part("5"), "messages[0].content[1] should be a text or an object");
  for (const char* part : {R"({"type": 5, "text": "x"})", R"({"image_url": "x"})", "{}"})
    EXPECT_EQ(says_of_part(part), "messages[0].content[1] should have a text as type") << part;
  EXPECT_EQ(says_of_part(R"({"type": "text", "text": 5})"), "messages[0].content[1] should have a text as text");
  EXPECT_EQ(says_of_part(R"({"type": "image_url"})"),
            "messages[0].content[1] is of the type image_url: only text is served");
  EXPECT_EQ(says_of_part(R"({"type": "thinking", "thinking": "y"})"),
            "messages[0].content[1] is of the type thinking: only text is served")
      << "of a user, whose thoughts no template writes";
  EXPECT_THAT(says(R"([{"role": "assistant", "tool_calls": [5]}])"), HasSubstr("messages[0].tool_calls"));
  EXPECT_THAT(says(R"([{"role": "assistant", "tool_calls": ["go"]}])"), HasSubstr("messages[0].tool_calls"));
  EXPECT_EQ(says(R"([{"role": "assistant", "tool_calls": [{"function": {"arguments": "{"}}]}])"), "")
      << "of a call that was cut";
  EXPECT_EQ(says(R"([{"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}}])"),
            "messages[0].function_call is the older form: use tool_calls");
  EXPECT_EQ(says(R"([{"role": "assistant", "content": "x", "function_call": null}])"), "");
}

TEST(chat_format, writes_calls_as_the_template_reads_them) {
  chat_input chat;
  chat.messages = R"([{"role": "assistant", "content": null, "tool_calls":
      [{"function": {"name": "w", "arguments": "{\"city\": \"Paris\"}"}}]}, {"role": "assistant", "content": ""}])";
  const auto writes = [&](const std::string& source) { return rendered({.usual = source}, chat); };
  EXPECT_EQ(writes("{% for m in messages %}[{% if m['content'] is none %}{% for call in m['tool_calls'] %}"
                   "{{ call['function']['name'] + call['function']['arguments'] + '.' }}{% endfor %}{% endif %}]"
                   "{% endfor %}"),
            R"([w{"city":"Paris"}.][])");
  EXPECT_EQ(writes("{% for m in messages %}[{% if m['content'] is none or m['content'] == '' %}none{% endif %}"
                   "{{ m['content'] | length }}]{% endfor %}"),
            "[none0][none0]");
  EXPECT_EQ(writes("{% for m in messages %}[{{ m.content + '.' }}{% for call in m.tool_calls or [] %}"
                   "{{ call.function.arguments.city }}{% endfor %}]{% endfor %}"),
            "[.Paris][.]");
}

/// As Llama 3's do.
TEST(chat_format, gives_each_call_a_message_where_the_template_takes_one) {
  const std::string source =
      "{% for m in messages %}[{{ m.content }}{% for call in m.tool_calls or [] %}{{ call.function.name }}{% endfor %}"
      "{{ m.tool_call_id }}]{% endfor %}";
  const std::string taking_one = source + "{{ '' or 'This model only supports single tool-calls at once!' | first }}";
  const std::string calls = R"({"role": "assistant", "content": "so", "tool_calls": [
      {"id": "1", "function": {"name": "f"}}, {"id": "2", "function": {"name": "g"}}]})";
  const auto result = [](const std::string& id) {
    return R"(, {"role": "tool", "content": "is", "tool_call_id": ")" + id + "\"}";
  };
  const std::string rest = R"(, {"role": "user", "content": "hi"})";
  const auto written = [&](const std::string& behind) {
    return rendered({.usual = taking_one}, {"[" + calls + behind + "]"});
  };
  EXPECT_EQ(rendered({.usual = source}, {"[" + calls + result("1") + result("2") + rest + "]"}),
            "[sofg][is1][is2][hi]");
  EXPECT_EQ(written(result("1") + result("2") + rest), "[sof][is1][g][is2][hi]T");
  EXPECT_EQ(written(result("2") + result("3") + result("1")), "[sof][is1][g][is2][is3]T") << "by their ids";
  EXPECT_EQ(written(result("2") + rest), "[sof][g][is2][hi]T");
  EXPECT_EQ(written(""), "[sofg]T") << "which it may refuse";
}

/// As that of DeepSeek-R1 does; later ones only ask whether there is a text.
TEST(chat_format, parts_calls_from_their_text_where_the_template_takes_one_of_both) {
  const std::string source =
      "{% for message in messages %}[{% if message['role'] == 'assistant' and message['content'] is none %}"
      "{{ message.tool_calls[0].function.name }}{% else %}{{ message['content'] }}{% endif %}]{% endfor %}";
  const std::string later =
      "{% for m in messages %}[{% if m['content'] is none %}{{ m.tool_calls | length }}{% else %}{{ m['content'] }}"
      "{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{% endif %}{% endif %}]{% endfor %}";
  const std::string call = R"({"role": "assistant", "content": "so", "tool_calls": [{"function": {"name": "f"}}]})";
  EXPECT_EQ(rendered({.usual = source}, {"[" + call + R"(, {"role": "tool", "content": "is"}])"}), "[so][f][is]");
  EXPECT_EQ(rendered({.usual = later}, {"[" + call + R"(, {"role": "tool", "content": "is"}])"}), "[sof][is]");
  EXPECT_EQ(rendered({.usual = source}, {"[" + call + "]"}), "[so]") << "which training refuses to learn";
}

TEST(chat_format, looks_for_results_of_calls_alone_which_takes_no_quadratic_time) {
  const auto time_for = [](const std::string& role) {
    std::string messages = greeting.substr(0, greeting.size() - 1);
    for (int i = 0; i < 60'000; ++i) messages += R"(, {"role": ")" + role + R"(", "content": ""})";
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(rendered({.usual = "{{ 'only supports single tool-calls' }}"}, {messages + "]"}),
              "only supports single tool-calls");
    return std::chrono::steady_clock::now() - begin;
  };
  const auto of_others = time_for("user");
  EXPECT_LT(time_for("tool"), 20 * of_others);
}

TEST(chat_format, goes_on_behind_a_call_that_was_cut) {
  chat_input chat;
  chat.messages = R"([{"role": "assistant", "content": null, "tool_calls":
      [{"function": {"name": "w", "arguments": "{\"city\": \"Pa"}}, {"function": {"arguments": "{\"a\": 1}"}}]}])";
  const auto writes = [&](const std::string& printed) {
    return rendered(
        {.usual = "{% for m in messages %}{% for call in m.tool_calls %}[" + printed + "]{% endfor %}{% endfor %}"},
        chat);
  };
  EXPECT_EQ(writes("{{ call.function.arguments }}"), R"([{"city": "Pa][{'a': 1}])");
  EXPECT_EQ(writes("{% for key, value in call.function.arguments | items %}{{ key }}={{ value }}{% endfor %}"),
            "[][a=1]");
  EXPECT_THAT(refusal([&] { writes("{{ raise_exception('never') }}"); }), HasSubstr("never"));
}

/// As Functionary's does.
TEST(chat_format, gives_arguments_as_text_to_a_template_that_adds_them_to_one) {
  const chat_input chat{.messages = R"([{"role": "assistant", "content": null, "tool_calls":
      [{"function": {"name": "w", "arguments": "{\"city\": \"Paris\"}"}}, {"function": {"arguments": "{\"a"}}]}])"};
  const std::string source =
      "{% for m in messages %}{% if m.content is not none %}[{{ m.content }}]{% endif %}{% for call in m.tool_calls %}"
      "{{ '#' + call.function.arguments }}{% endfor %}{% endfor %}";
  EXPECT_EQ(rendered({.usual = source}, chat), R"([]#{"city":"Paris"}#{"a)");
  EXPECT_EQ(rendered({.usual = "{% set contain_content = 'no' %}" + source}, chat), R"(#{"city":"Paris"}#{"a)");
}

TEST(chat_format, puts_what_is_said_behind_a_result_into_it_where_the_template_refuses_it_there) {
  const std::string source = "{% for m in messages %}[{{ m.role + ':' + m.content }}]{% endfor %}";
  const std::string strict =
      "{% for m in messages[1:] %}{% if m.role == 'user' and messages[loop.index0].role in ['tool', 'user'] %}"
      "{{ raise_exception('no ' + m.content) }}{% endif %}{% endfor %}" +
      source;
  const std::string asked = R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": null,
      "tool_calls": [{"function": {"name": "w", "arguments": "{}"}}]}, {"role": "tool", "content": "b"},
      {"role": "user", "content": "c"}, {"role": "user", "content": "d"}])";
  EXPECT_EQ(rendered({.usual = source}, {asked}), "[user:a][assistant:][tool:b][user:c][user:d]");
  EXPECT_EQ(rendered({.usual = strict}, {asked}), "[user:a][assistant:][tool:b\nc\nd]");
  EXPECT_THAT(refusal([&] { rendered({.usual = strict + "{{ raise_exception('never') }}"}, {asked}); }),
              HasSubstr("no c"))
      << "what it says of the messages as they came";
}

TEST(chat_format, changes_no_more_of_the_messages_than_the_template_refuses) {
  chat_input chat;
  chat.messages = R"([{"role": "assistant", "content": null, "tool_calls":
      [{"function": {"name": "w", "arguments": "{\"city\": \"Pa"}}]}, {"role": "tool", "content": "b"},
      {"role": "user", "content": "c"}])";
  const std::string arguments = "{{ m.tool_calls[0].function.arguments if m.tool_calls }}";
  const std::string as_object =
      "{% if m.tool_calls %}{% for key, value in m.tool_calls[0].function.arguments | items %}{{ key }}{% endfor %}"
      "{% endif %}";
  const std::string no_question = "{{ raise_exception('no question') if m.role == 'user' }}";
  const auto writes = [&](const std::string& each) {
    return rendered({.usual = "{% for m in messages %}[" + each + "{{ m.content }}]{% endfor %}"}, chat);
  };
  EXPECT_EQ(writes(arguments + no_question), "[{\"city\": \"Pa][b\nc]") << "which are not at fault";
  EXPECT_EQ(writes(as_object + "{{ m.role[0] }}"), "[a][tb][uc]");
  EXPECT_EQ(writes(as_object + no_question), "[][b\nc]");
  chat.variables = R"({"x": 1})";
  EXPECT_THAT(refusal([&] { writes(as_object + no_question + "{{ raise_exception('no x') if x }}"); }),
              HasSubstr("chat_template_kwargs"))
      << "since it can be rendered without them";
}

/// As those of Hermes and of Apertus do.
TEST(chat_format, completes_tools_where_the_template_cannot_do_without) {
  const chat_input chat{.messages = greeting, .tools = R"([{"type": "function", "function": {"name": "w"}},
      {"type": "function", "function": {"name": "v", "description": "d", "parameters": {"type": "object"}}}])"};
  const auto writes = [&](const std::string& each) {
    return rendered({.usual = "{% for t in tools %}[" + each + "]{% endfor %}"}, chat);
  };
  EXPECT_EQ(writes("{{ t.function | tojson }}"),
            R"([{"name": "w"}][{"name": "v", "description": "d", "parameters": {"type": "object"}}])");
  EXPECT_EQ(writes("{{ '#' + t.function.description + '#' }}"), "[##][#d#]");
  EXPECT_EQ(writes("{{ t.function.parameters | tojson }}"),
            R"([{"type": "object", "properties": {}}][{"type": "object"}])");
  EXPECT_THAT(refusal([&] { writes("{{ raise_exception('never') }}"); }), HasSubstr("never"));
}

/// As Mistral's do; calls and their answers still belong together.
TEST(chat_format, shortens_ids_of_calls_for_templates_that_count_their_letters) {
  chat_input chat;
  chat.messages = R"([{"role": "assistant", "content": null, "tool_calls": [{"id": "call_0123456789abc",
      "function": {"name": "w", "arguments": "{}"}}, {"id": "1", "function": {"name": "w", "arguments": "{}"}}]},
      {"role": "tool", "content": "", "tool_call_id": "call_0123456789abc"}])";
  const std::string source =
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.id }} {% endfor %}{{ m.tool_call_id }}{% endfor %}";
  EXPECT_EQ(rendered({.usual = source}, chat), "call_0123456789abc 1 call_0123456789abc");
  EXPECT_EQ(rendered({.usual = source + "{{ 'x' if messages | length != 9 }}"}, chat), "456789abc 1 456789abcx");
}

/// As Phi-4-mini's does, which knows nothing of calls.
TEST(chat_format, gives_tools_to_templates_that_look_for_them_in_the_system_message) {
  const std::string source =
      "{% for m in messages %}{% set message = m %}[{{ m.role + ':' + m.content }}"
      "{% if 'tools' in message %}|{{ m.tools }}{% endif %}]{% endfor %}";
  chat_input chat{.messages = R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": null,
      "tool_calls": [{"function": {"name": "w", "arguments": "{}"}}]}])"};
  EXPECT_EQ(rendered({.usual = source}, chat), "[user:hi][assistant:]");
  chat.tools = R"([{"type": "function", "function": {"name": "w"}}])";
  EXPECT_EQ(rendered({.usual = source}, chat),
            R"([system:|[{"name":"w"}]][user:hi][assistant:<|tool_call|>[{"name":"w","arguments":{}}]<|/tool_call|>])");
  chat.messages = R"([{"role": "system", "content": "Be brief"}, {"role": "user", "content": "hi"}])";
  EXPECT_EQ(rendered({.usual = source}, chat), R"([system:Be brief|[{"name":"w"}]][user:hi])");
}

/// As LFM2's do.
TEST(chat_format, writes_calls_as_python_where_the_template_shows_none) {
  const std::string source =
      "{% if tools %}List of tools: {% endif %}{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}";
  const chat_input chat{.messages = R"([{"role": "assistant", "content": "So", "tool_calls": [
      {"function": {"name": "w", "arguments": "{\"to\": \"a 'b'\", \"by\": {\"car\": [true, null, 1.5]}, \"n\": 1}"}},
      {"function": {"name": "look", "arguments": "{}"}}, {"function": {"name": "cut", "arguments": "{\"a"}}]}])"};
  EXPECT_EQ(rendered({.usual = source}, chat),
            R"(<|im_start|><|tool_call_start|>[w(to="a 'b'", by={"car": [True, None, 1.5]}, n=1), look(), cut({"a)])"
            "<|tool_call_end|>So");
  EXPECT_EQ(rendered({.usual = source + "{{ tool_calls }}"}, chat), "<|im_start|>So") << "it shows them itself";
}

/// As GLM-4's do; older ones look for the tools in a message.
TEST(chat_format, writes_calls_as_messages_with_metadata) {
  const std::string request = "Json 格式表示调用的参数",
                    tools = "{% if item['tools'] is defined %}{{ item['tools'] }}{% endif %}";
  const std::string source =
      "{% for item in messages %}[{{ item['role'] }}:{{ item.get('metadata', '') }}:"
      "{{ item['content'] }}]{% endfor %}";
  const chat_input chat{.messages = R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": null,
      "tool_calls": [{"function": {"name": "w", "arguments": "{\"a\": 1}"}}, {"function": {"name": "v"}}]},
      {"role": "tool", "content": "x"}, {"role": "assistant", "content": "So",
      "tool_calls": [{"function": {"name": "w", "arguments": "{\"a"}}]}])",
                        .tools = R"([{"type": "function"}])"};
  const std::string calls =
      R"([user::hi][assistant:w:{"a":1}][assistant:v:{}][observation::x][assistant::So][assistant:w:{"a])";
  EXPECT_EQ(rendered({.usual = source + request}, chat), calls + request);
  EXPECT_EQ(rendered({.usual = "{#" + tools + "#}" + source + request}, chat), "[system::]" + calls + request);
}

/// As Cohere's do.
TEST(chat_format, gives_thoughts_to_a_template_that_calls_them_a_plan) {
  const std::string source =
      "{% for message in messages %}{% if message.tool_calls %}({{ message.tool_plan }})"
      "{% else %}{{ message.content }}{% endif %}{% endfor %}";
  const auto written = [&](const std::string& fields) {
    return rendered({.usual = source}, {.messages = R"([{"role": "assistant", )" + fields + R"(, "tool_calls":
        [{"function": {"name": "w", "arguments": "{}"}}]}])"});
  };
  EXPECT_EQ(written(R"("content": "So", "reasoning_content": "Hm")"), "(Hm)");
  EXPECT_EQ(written(R"("content": "So")"), "(So)");
  EXPECT_EQ(written(R"("content": null)"), "()");
}

/// As that of Command A Reasoning does.
TEST(chat_format, gives_parts_to_a_template_that_goes_through_results) {
  const std::string source =
      "{% for m in messages %}{% set tool_msg = m %}{% if m.role == 'tool' %}"
      "{% for content in tool_msg.content %}({{ content.text }}){% endfor %}"
      "{% elif m.content[0].thinking %}!{% elif m.content is string %}{{ m.content }}{% endif %}{% endfor %}";
  const chat_input chat{.messages = R"([{"role": "user", "content": "hi"},
      {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "w", "arguments": "{}"}}]},
      {"role": "tool", "content": "22"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "so"}])"};
  EXPECT_EQ(rendered({.usual = source}, chat), "hi(22)so");
  const chat_sources knows_texts{.usual = source + "{# tool_msg.content is string #}"};
  EXPECT_THAT(refusal([&] { rendered(knows_texts, chat); }), HasSubstr("no element 0"));
}

TEST(chat_format, refuses_roles_that_nobody_knows) {
  const std::string source = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}";
  const auto with_role = [](const std::string& role) {
    return json{{{"role", "user"}, {"content", "hi"}}, {{"role", role}, {"content", "you"}}}.dump();
  };
  EXPECT_EQ(refusal([&] { rendered({.usual = source}, {with_role("usr")}); }),
            "messages[1].role is \"usr\": use system, user, assistant or tool");
  for (const char* role : {"system", "developer", "user", "assistant", "tool", "function"})
    EXPECT_THAT(rendered({.usual = source}, {with_role(role)}), HasSubstr("hi"));
  const std::string knows_another = source + "{{ messages[1].role == \"ipython\" }}";
  EXPECT_EQ(rendered({.usual = knows_another}, {with_role("ipython")}), "hiTrue");
}

TEST(chat_format, ends_behind_the_last_message_where_the_answer_goes_on_with_it) {
  const auto begun = [](const std::string& source, const std::string& said) {
    const json messages{{{"role", "user"}, {"content", "hi"}}, {{"role", "assistant"}, {"content", said}}};
    return rendered({.usual = source}, {messages.dump(), {}, {}, false, true});
  };
  const std::string plain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>\n{% endfor %}";
  EXPECT_EQ(begun(plain, "It is "), "<user>hi</s>\n<assistant>It is ");
  EXPECT_EQ(begun(plain, "s"), "<user>hi</s>\n<assistant>s") << "which stands behind it, too";
  EXPECT_EQ(begun(plain, ""), "<user>hi</s>\n<assistant>");
  const std::string stripping = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</s>{% endfor %}";
  EXPECT_EQ(begun(stripping, " It is "), "<user>hi</s><assistant>It is") << "as it would write this message";
  const std::string apart = "{% for m in messages %}[{{ m.role }}]\n\n{{ m.content | trim }}</s>{% endfor %}";
  for (const char* nothing : {"", " \n"}) EXPECT_EQ(begun(apart, nothing), "[user]\n\nhi</s>[assistant]\n\n");
  EXPECT_EQ(begun(apart, "It is\n\n"), "[user]\n\nhi</s>[assistant]\n\nIt is");
  EXPECT_THAT(refusal([&] { begun("{{ messages[0].content }}", "It is"); }), HasSubstr("continue_final_message"));
}

TEST(chat_format, writes_requests_with_tools_by_the_template_for_them) {
  const chat_sources sources{.usual = "plain", .with_tools = "{{ tools[0].name }}"};
  EXPECT_EQ(rendered(sources, {greeting, R"([{"name": "go"}])", {}, true}), "go");
  EXPECT_EQ(rendered(sources, {greeting, "", {}, true}), "plain");
  EXPECT_EQ(rendered(sources, {greeting, "[]", {}, true}), "plain");
  EXPECT_EQ(chat_format(sources, "template", no_tokenizer()).tool_source(), sources.with_tools);
}

TEST(chat_format, gives_templates_the_special_tokens_and_further_variables) {
  const chat_sources sources{.usual = "{{ pad_token }}{{ mood }}", .texts = {{"pad_token", "<pad>"}}};
  EXPECT_EQ(rendered(sources, {greeting, "", R"({"mood": "!"})", true}), "<pad>!");
  json many = json::object();
  for (int i = 0; i <= 1000; ++i) many["name" + std::to_string(i)] = i;
  EXPECT_EQ(refusal([&] {
              rendered(sources, {greeting, "", many.dump(), true});
            }),
            "chat_template_kwargs: has 1001 names: use at most 1000");
}

TEST(chat_format, names_the_variables_where_these_are_at_fault) {
  const chat_sources sources{.usual =
                                 "{% if mood %}{{ raise_exception('no ' ~ mood) }}{% endif %}"
                                 "{% if messages[0].content == 'bad' %}{{ raise_exception('no') }}{% endif %}"};
  const auto field_at_fault = [&](const std::string& messages, const std::string& variables) {
    try {
      (void)rendered(sources, {messages, "", variables, true});
    } catch (const field_error& error) {
      return error.field();
    } catch (const input_error&) {
      return std::string("the chat");
    }
    return std::string();
  };
  const std::string bad = R"([{"role": "user", "content": "bad"}])";
  EXPECT_EQ(field_at_fault(greeting, R"({"mood": 0})"), "");
  EXPECT_EQ(field_at_fault(greeting, R"({"mood": "joy"})"), "chat_template_kwargs");
  EXPECT_EQ(field_at_fault(greeting, "[1]"), "chat_template_kwargs");
  EXPECT_EQ(field_at_fault(greeting, R"({"mood": )" + std::string(70, '[') + std::string(70, ']') + "}"),
            "chat_template_kwargs");
  EXPECT_EQ(field_at_fault(bad, R"({"mood": 0})"), "the chat");
  EXPECT_EQ(field_at_fault(bad, ""), "the chat");
}

TEST(chat_sources, are_read_from_tokenizer_config) {
  const test::temp_folder folder;
  EXPECT_FALSE(find_chat_sources(folder.path()));
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"},
                                     {"name": "tool_use", "template": "t"}],
                   "pad_token": "<pad>", "unk_token": {"content": "<unk>"}, "bos_token": null})");
  const auto found = find_chat_sources(folder.path());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->usual, "d");
  EXPECT_EQ(found->for_tools(), "t");
  EXPECT_EQ(found->texts.at("unk_token"), "<unk>");
  folder.write("chat_template.jinja", "own");
  EXPECT_EQ(find_chat_sources(folder.path())->for_tools(), "own");
}

TEST(chat_sources, take_special_tokens_from_a_file_of_their_own) {
  const test::temp_folder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "t", "pad_token": "<old>", "unk_token": "<unk>"})");
  folder.write("special_tokens_map.json", R"({"pad_token": {"content": "<pad>"}})");
  const auto found = find_chat_sources(folder.path());
  EXPECT_EQ(found->texts.at("pad_token"), "<pad>");
  EXPECT_EQ(found->texts.at("unk_token"), "<unk>");
}

TEST(chat_sources, are_read_from_files_of_their_own) {
  const test::temp_folder folder;
  std::filesystem::create_directory(folder.path() / "additional_chat_templates");
  folder.write("chat_template.jinja", "own");
  folder.write("additional_chat_templates/tool_use.jinja", "own for tools");
  const auto found = find_chat_sources(folder.path());
  EXPECT_EQ(found->usual, "own");
  EXPECT_EQ(found->for_tools(), "own for tools");
}

TEST(chat_sources, are_read_from_the_file_of_older_models_that_see_pictures) {
  const test::temp_folder folder;
  const auto old = folder.write("chat_template.json", R"({"chat_template": "old"})");
  EXPECT_EQ(find_chat_sources(folder.path())->usual, "old");
  folder.write("tokenizer_config.json", R"({"chat_template": "t"})");
  EXPECT_EQ(find_chat_sources(folder.path())->usual, "t") << "the tokenizer's comes first: it may know tools";
  folder.write("tokenizer_config.json", "{}");
  folder.write("chat_template.json", R"({"chat_template": 1})");
  EXPECT_THAT(test::refusal([&] { find_chat_sources(folder.path()); }),
              testing::StartsWith(old.string() + ": \"chat_template\" should be a text"));
  folder.write("chat_template.json", "[]");
  EXPECT_FALSE(find_chat_sources(folder.path()));
}

TEST(chat_sources, are_read_from_gguf_metadata) {
  const test::temp_folder folder;
  const auto file = [&](const test::gguf_builder& from) { return folder.write("m.gguf", from.build()); };
  test::gguf_builder metadata;
  EXPECT_FALSE(find_chat_sources(file(metadata)));
  metadata.string("tokenizer.chat_template", "d");
  EXPECT_EQ(find_chat_sources(file(metadata))->for_tools(), "d");
  metadata.string("tokenizer.chat_template.tool_use", "t");
  EXPECT_EQ(find_chat_sources(file(metadata))->usual, "d");
  EXPECT_EQ(find_chat_sources(file(metadata))->for_tools(), "t");
}

TEST(chat_sources, beside_a_gguf_file_come_before_its_metadata) {
  const test::temp_folder folder;
  test::gguf_builder metadata;
  const auto none = folder.write("none.gguf", metadata.build());
  EXPECT_THAT(refusal([&] { chat_format(none, no_tokenizer()); }), HasSubstr("as none.jinja beside it would be"));
  metadata.string("tokenizer.chat_template", "d").string("tokenizer.chat_template.tool_use", "t");
  const auto model = folder.write("m.gguf", metadata.build());
  for (const char* name : {"none.jinja", "m.jinja"}) folder.write(name, "own");
  for (const auto& file : {none, model}) {
    const auto found = find_chat_sources(file);
    EXPECT_EQ(found->usual, "own");
    EXPECT_EQ(found->for_tools(), "own");
    EXPECT_TRUE(found->leaves_bos) << "as in its metadata";
  }
}

TEST(chat_format, begins_with_one_bos_where_a_gguf_template_leaves_it_to_the_tokenizer) {
  const test::temp_folder folder;
  const auto text = [&](const char* source, const char* pre) {
    test::gguf_builder file;
    file.string("tokenizer.ggml.model", "gpt2").string("tokenizer.ggml.pre", pre).strings("tokenizer.ggml.merges", {});
    file.strings("tokenizer.ggml.tokens", {"<s>", "h", "i"}).u32("tokenizer.ggml.bos_token_id", 0);
    const auto model = folder.write("m.gguf", file.string("tokenizer.chat_template", source).build());
    return chat_format(model, load_tokenizer(model)).render("", "hi");
  };
  EXPECT_EQ(text("{{ messages[0].content }}", "llama-bpe"), "<s>hi");
  EXPECT_EQ(text("{{ bos_token }}{{ messages[0].content }}", "llama-bpe"), "<s>hi");
  EXPECT_EQ(text("{{ messages[0].content }}", "qwen2"), "hi") << "no text of this tokenizer begins with it";
}

TEST(chat_sources, without_a_default_among_several_are_refused) {
  const test::temp_folder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "tool_use", "template": "t"}]})");
  EXPECT_THAT(refusal([&] { find_chat_sources(folder.path()); }), HasSubstr("\"default\""));
}

}  // namespace
}  // namespace troupe
