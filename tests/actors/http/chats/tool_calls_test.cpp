#include "actors/http/chats/tool_calls.hpp"

#include <gtest/gtest.h>

namespace troupe::test {
namespace {

const shared_offers go_and_look = std::make_shared<const std::vector<tool_offer>>(
    std::vector<tool_offer>{{.name = "go", .texts = {"to"}}, {.name = "look"}});

/// All text, and all calls as "name(arguments)", of an answer that comes in pieces of `size`.
std::pair<std::string, std::string> read(tool_style style, const std::string& answer, std::size_t size) {
  tool_call_reader reader(style, go_and_look);
  std::string text, calls;
  for (std::size_t at = 0; at < answer.size(); at += size) text += reader.push(answer.substr(at, size));
  text += reader.finish(false);
  for (const tool_call& each : reader.take_calls()) calls += each.name + "(" + each.arguments + ")";
  return {text, calls};
}

TEST(tool_calls, are_read_the_same_however_the_answer_is_cut) {
  const std::string tagged = R"(So: <tool_call>
{"name": "go", "arguments": {"to": "<tool>"}}
</tool_call>
<tool_call>{"name": "look", "arguments": "{}"}</tool_call>)";
  const std::string bare = R"( {"name": "go", "parameters": {"a": [1]}}; {"name": "look", "parameters": {}})";
  const std::string listed =
      R"( [{"name": "go", "arguments": {"a": "]"}, "id": "1"}, {"name": "look", "arguments": {}}])";
  for (std::size_t size = 1; size < 40; ++size) {
    EXPECT_EQ(read(tool_style::tagged, tagged, size),
              std::pair(std::string("So: "), std::string(R"(go({"to":"<tool>"})look({}))")));
    EXPECT_EQ(read(tool_style::bare, bare, size), std::pair(std::string(), std::string(R"(go({"a":[1]})look({}))")));
    EXPECT_EQ(read(tool_style::listed, listed, size),
              std::pair(std::string(), std::string(R"(go({"a":"]"})look({}))")));
  }
}

TEST(tool_calls, may_have_the_closing_tag_in_their_arguments) {
  const std::string call = R"(<tool_call>
{"name": "go", "arguments": {"to": "a </tool_call> \"b\" </tool_call>"}}
</tool_call> and more)";
  for (std::size_t size = 1; size < 40; ++size)
    EXPECT_EQ(read(tool_style::tagged, call, size),
              std::pair(std::string(" and more"), std::string(R"(go({"to":"a </tool_call> \"b\" </tool_call>"}))")));
}

TEST(tool_calls, may_be_in_tags_of_seed_and_of_minimax) {
  const std::string seed = R"(So: <seed:tool_call>
<function=go>
<parameter=to>the </seed:think> end</parameter>
<parameter=a>[1]</parameter>
</function>
</seed:tool_call>)";
  const std::string minimax = R"(So: <minimax:tool_call>
<invoke name="go">
<parameter name="to">1</parameter>
<parameter name="a">{"b": true}</parameter>
</invoke>
<invoke name="look">
</invoke>
</minimax:tool_call>
)";
  for (std::size_t size = 1; size < 40; ++size) {
    EXPECT_EQ(read(tool_style::seeded, seed, size),
              std::pair(std::string("So: "), std::string(R"(go({"to":"the </seed:think> end","a":[1]}))")));
    EXPECT_EQ(read(tool_style::invoked, minimax, size),
              std::pair(std::string("So: "), std::string(R"(go({"to":"1","a":{"b":true}})look({}))")));
  }
  EXPECT_EQ(read(tool_style::invoked, R"(<minimax:tool_call>{"name": "look", "arguments": {}}</minimax:tool_call>)", 9),
            std::pair(std::string(), std::string("look({})")))
      << "as a form has it";
  for (const std::string other : {"<minimax:tool_call><invoke name=\"fly\"></invoke></minimax:tool_call>",
                                  "<minimax:tool_call><invoke name=\"look\"></invoke> and</minimax:tool_call>"})
    EXPECT_EQ(read(tool_style::invoked, other, 5), std::pair(other, std::string()));
}

/// Which is a special token, and so mostly no part of the text.
TEST(tool_calls, may_have_the_familys_mark_before_them) {
  const std::string list = R"([{"name": "look", "arguments": {}}])", call = R"({"name": "look", "parameters": {}})";
  for (const std::size_t size : {1u, 3u, 100u}) {
    EXPECT_EQ(read(tool_style::listed, "[TOOL_CALLS]" + list, size).second, "look({})");
    EXPECT_EQ(read(tool_style::listed, "<|tool_call|> " + list, size).second, "look({})");
    EXPECT_EQ(read(tool_style::listed, "<|tool_call|>" + list + "<|/tool_call|>", size).second, "look({})");
    EXPECT_EQ(read(tool_style::bare, "<|python_tag|>" + call, size).second, "look({})");
  }
}

/// Mistral's, from v11 on.
TEST(tool_calls, may_have_their_names_before_them) {
  const std::string answer =
      R"(Wait. [TOOL_CALLS]go[ARGS]{"to": "]}"} [TOOL_CALLS]look[CALL_ID]x1[ARGS]{"a": {"b": 1}})";
  for (std::size_t size = 1; size < 50; ++size)
    EXPECT_EQ(read(tool_style::named, answer, size),
              std::pair(std::string("Wait. "), std::string(R"(go({"to":"]}"})look({"a":{"b":1}}))")));
  for (const char* text : {R"([TOOL_CALLS]fly[ARGS]{})", "[TOOL_CALLS]go", "[TOOL_CALLS]go[ARGS]no JSON"})
    EXPECT_EQ(read(tool_style::named, text, 3), std::pair(std::string(text), std::string()));
}

/// DeepSeek's from V3.1 on.
TEST(tool_calls, may_be_a_section_behind_a_text) {
  const std::string begin = "<｜tool▁calls▁begin｜>", end = "<｜tool▁calls▁end｜>";
  const std::string go = R"(<｜tool▁call▁begin｜>go<｜tool▁sep｜>{"to": "]}"}<｜tool▁call▁end｜>)";
  const std::string look = R"(<｜tool▁call▁begin｜>look<｜tool▁sep｜>{}<｜tool▁call▁end｜>)";
  const std::string fly = R"(<｜tool▁call▁begin｜>fly<｜tool▁sep｜>{}<｜tool▁call▁end｜>)";
  for (const std::size_t size : {1u, 2u, 7u, 30u, 500u}) {
    EXPECT_EQ(read(tool_style::sectioned, "Wait. " + begin + go + "\n" + look + end, size),
              std::pair(std::string("Wait. "), std::string(R"(go({"to":"]}"})look({}))")));
    EXPECT_EQ(read(tool_style::sectioned, begin + fly + look + end, size), std::pair(fly, std::string("look({})")))
        << "of what is offered";
    EXPECT_EQ(read(tool_style::sectioned, begin + look + " and " + go + end, size),
              std::pair(std::string(" and "), std::string(R"(look({})go({"to":"]}"}))")));
    EXPECT_EQ(read(tool_style::sectioned, begin + go, size).second, R"(go({"to":"]}"}))") << "without the end";
    const std::string unknown = begin + fly + end + " and more";
    EXPECT_EQ(read(tool_style::sectioned, unknown, size), std::pair(unknown, std::string()));
  }
}

/// DeepSeek's V3 and R1.
TEST(tool_calls, may_have_blocks_of_markdown) {
  const std::string answer =
      "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>go\n```json\n{\"to\": \"``` `\"}\n```"
      "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{}\n```<｜tool▁call▁end｜>"
      "<｜tool▁calls▁end｜>";
  for (const std::size_t size : {1u, 2u, 7u, 30u, 500u})
    EXPECT_EQ(read(tool_style::fenced, answer, size),
              std::pair(std::string(), std::string(R"(go({"to":"``` `"})look({}))")));
  EXPECT_EQ(read(tool_style::fenced, begun_call(tool_style::fenced, "go") + R"({"a": 1})", 3).second, R"(go({"a":1}))")
      << "as a form makes it";
  EXPECT_EQ(read(tool_style::sectioned, begun_call(tool_style::sectioned, "go") + R"({"a": 1})", 3).second,
            R"(go({"a":1}))");
}

/// LFM2's.
TEST(tool_calls, may_be_those_of_python) {
  const std::string begin = "<|tool_call_start|>", end = "<|tool_call_end|>";
  const std::string answer = "Wait. " + begin +
                             R"([go(to="a \"b\"\n)], \x41 ü", by={'car': True, "ways": [1, 'x', None]}, n=-1.50e3,), )"
                             R"(look()])" +
                             end + "Done";
  const std::string calls = R"(go({"to":"a \"b\"\n)], \u0041 ü","by":{"car":true,"ways":[1,"x",null]},"n":-1.50e3}))"
                            R"(look({}))";
  for (std::size_t size = 1; size < 60; ++size)
    EXPECT_EQ(read(tool_style::pythonic, answer, size), std::pair(std::string("Wait. Done"), calls)) << size;
  const auto calls_of = [&](const std::string& list) {
    return read(tool_style::pythonic, begin + list + end, 7).second;
  };
  EXPECT_EQ(calls_of(R"([go(to='It\'s')])"), R"(go({"to":"It's"}))");
  EXPECT_EQ(calls_of(R"([go(to='It's', by='d:\e')])"), R"(go({"to":"It's","by":"d:\\e"}))") << "as the template has it";
  EXPECT_EQ(calls_of(R"([go(to="The "why": because ["a"]", by=["a "b") c", {"d, "e", f": "g "h"] i"}])])"),
            R"(go({"to":"The \"why\": because [\"a\"]","by":["a \"b\") c",{"d, \"e\", f":"g \"h\"] i"}]}))")
      << "a quote ends what its list may go on behind";
  EXPECT_EQ(calls_of("[go(to=\"\"\"a \"b\", 'c'\nd\\n\"\"\", by='''''', n='''It's, \"e\"''')]"),
            R"(go({"to":"a \"b\", 'c'\nd\n","by":"","n":"It's, \"e\""}))");
  EXPECT_EQ(calls_of("[go(n=9400111899223100001234, a=(1, 2))]"), R"(go({"n":9400111899223100001234,"a":[1,2]}))");
  EXPECT_EQ(calls_of(R"([{"name": "go", "arguments": {"a": 1}}, {"name": "look", "arguments": {}}])"),
            R"(go({"a":1})look({}))")
      << "as some templates write earlier ones";
}

TEST(tool_calls, of_python_are_whole_lists_of_what_is_offered) {
  const std::vector<std::string> none{"[fly()]",
                                      "[go(), fly()]",
                                      "go()",
                                      "[go]",
                                      "[go('x')]",
                                      "[go(a)]",
                                      "[go(a=b c)]",
                                      "[go(a=1)] and",
                                      "[go(a=[1)]",
                                      "[go(a={1: 2})]",
                                      "[go(a='x']",
                                      R"([go(a="\u12")])",
                                      "[go(a=" + std::string(5000, '[') + ")]"};
  const std::string look = "<|tool_call_start|>[look()]<|tool_call_end|>";
  for (const std::string& each : none) {
    const std::string text = "<|tool_call_start|>" + each + "<|tool_call_end|>";
    EXPECT_EQ(read(tool_style::pythonic, text + look, 5), std::pair(text, std::string("look({})"))) << each;
  }
}

/// Cohere's.
TEST(tool_calls, may_be_actions) {
  const std::string begin = "<|START_ACTION|>", end = "<|END_ACTION|>";
  const std::string answer = "Wait. " + begin + R"([
    {"tool_call_id": "0", "tool_name": "go", "parameters": {"to": "]}", "n": 9400111899223100001234}},
    {"tool_call_id": "1", "tool_name": "look", "parameters": {}}
])" + end;
  for (std::size_t size = 1; size < 60; ++size)
    EXPECT_EQ(read(tool_style::actions, answer, size),
              std::pair(std::string("Wait. "), std::string(R"(go({"to":"]}","n":9400111899223100001234})look({}))")));
  for (const char* none :
       {R"([{"tool_name": "fly", "parameters": {}}])", R"([{"name": "go", "parameters": {}}])",
        R"({"tool_name": "go", "parameters": {}})", R"([{"tool_name": "go", "parameters": {}}] and)"})
    EXPECT_EQ(read(tool_style::actions, begin + none + end, 5), std::pair(begin + none + end, std::string()));
}

/// GLM-4's.
TEST(tool_calls, may_have_their_names_on_a_line_of_their_own) {
  const std::string answer = "\ngo\n{\"to\": \"}\\n\"}look\n{}\n";
  for (std::size_t size = 1; size < 30; ++size)
    EXPECT_EQ(read(tool_style::headed, answer, size),
              std::pair(std::string(), std::string(R"(go({"to":"}\n"})look({}))")));
  for (const char* text : {"go", "go\n", "go\nthere", "fly\n{}", "go {}", "go{}", "go\n{} and", "go\n{", "go\n[1]",
                           "look\nat {}", "Go\n{}"})
    EXPECT_EQ(read(tool_style::headed, text, 1), std::pair(std::string(text), std::string())) << text;
  EXPECT_EQ(read(tool_style::headed, begun_call(tool_style::headed, "go") + R"({"a": 1})", 3).second, R"(go({"a":1}))")
      << "as a form makes it";
}

/// Gemma 4's.
TEST(tool_calls, may_have_no_quotes) {
  const std::string answer =
      R"(I go. <|tool_call>call:go{to:<|"|>a "b"
\c {}, <tool_call|> d<|"|>,steps:-1.50e3,far:true,by:{car:null,ways:[<|"|>1<|"|>,2,[]]},<|"|>a b<|"|>:{}}<tool_call|>)"
      R"(<|tool_call>call:look{}<tool_call|>)";
  const std::string calls = R"(go({"to":"a \"b\"\n\\c {}, <tool_call|> d","steps":-1.50e3,"far":true,)"
                            R"("by":{"car":null,"ways":["1",2,[]]},"a b":{}})look({}))";
  for (std::size_t size = 1; size < 60; ++size)
    EXPECT_EQ(read(tool_style::unquoted, answer, size), std::pair(std::string("I go. "), calls)) << size;
  const auto arguments = [](const std::string& written) {
    return read(tool_style::unquoted, "<|tool_call>call:go" + written + "<tool_call|>", 7).second;
  };
  EXPECT_EQ(arguments(R"({ "to": "a \" }", "n": [1, 2] })"), R"(go({"to":"a \" }","n":[1,2]}))") << "JSON";
  EXPECT_EQ(arguments("{to: New York , day:None}"), R"(go({"to":"New York","day":null}))");
  EXPECT_EQ(arguments("{to:,n:3,by:{car: }}"), R"(go({"to":"","n":3,"by":{"car":""}}))");
  EXPECT_EQ(arguments("{n:9400111899223100001234}"), R"(go({"n":9400111899223100001234}))");
}

TEST(tool_calls, have_arguments_also_where_they_have_no_quotes) {
  const std::vector<std::string> none{"call:fly{}",
                                      "call:go",
                                      "go{}",
                                      "call:go[]",
                                      "call:go{to}",
                                      "call:go{to:[,1]}",
                                      "call:go{to:1]",
                                      "call:go{to:1}}",
                                      "call:go{:1}",
                                      "call:go{to:1,}",
                                      R"(call:go{"to":"\x"})",
                                      "call:go{to:" + std::string(5000, '[') + "}"};
  const std::string look = "<|tool_call>call:look{}<tool_call|>";
  for (const std::string& each : none) {
    const std::string text = "<|tool_call>" + each + "<tool_call|>";
    EXPECT_EQ(read(tool_style::unquoted, text + look, 5), std::pair(text, std::string("look({})"))) << each;
  }
}

/// GLM's. What is JSON is meant so, but for texts.
TEST(tool_calls, may_have_their_arguments_keys_in_tags) {
  const std::string answer = R"(I go.
<tool_call>go
<arg_key>to</arg_key>
<arg_value>12</arg_value>
<arg_key>steps</arg_key>
<arg_value>12</arg_value>
</tool_call>
<tool_call>look</tool_call>)";
  for (std::size_t size = 1; size < 60; size += 7)
    EXPECT_EQ(read(tool_style::nested, answer, size),
              std::pair(std::string("I go.\n"), std::string(R"(go({"to":"12","steps":12})look({}))")));
  EXPECT_EQ(
      read(tool_style::nested, "<tool_call>go<arg_key>a</arg_key><arg_value>[1]</arg_value></tool_call>", 4).second,
      R"(go({"a":[1]}))");
  for (const char* other : {"<tool_call>fly</tool_call>", "<tool_call>go <arg_key>a</arg_key></tool_call>",
                            "<tool_call>go there</tool_call>"})
    EXPECT_EQ(read(tool_style::nested, other, 5), std::pair(std::string(other), std::string()));
}

/// Qwen3-Coder's. What is JSON is meant so, but for texts.
TEST(tool_calls, may_be_written_in_tags) {
  const std::string answer = R"(I go.
<tool_call>
<function=go>
<parameter=to>
12
</parameter>
<parameter=steps>
12
</parameter>
<parameter=way>
one
 "two"
</parameter>
<parameter=by>
{"car": [true, null]}
</parameter>
</function>
</tool_call>
<tool_call>
<function=look>
</function>
</tool_call>)";
  for (std::size_t size = 1; size < 60; size += 7) {
    EXPECT_EQ(
        read(tool_style::nested, answer, size),
        std::pair(std::string("I go.\n"),
                  std::string(R"(go({"to":"12","steps":12,"way":"one\n \"two\"","by":{"car":[true,null]}})look({}))")));
  }
  EXPECT_EQ(read(tool_style::nested,
                 "<tool_call><function=go><parameter=to>True</parameter><parameter=a>True</parameter>"
                 "<parameter=b>None</parameter></function></tool_call>",
                 9)
                .second,
            R"(go({"to":"True","a":true,"b":null}))")
      << "as Python writes them, and the template with it";
  for (const char* other : {"<tool_call><function=fly></function></tool_call>",
                            "<tool_call><function=go><parameter=to>1</function></tool_call>",
                            "<tool_call><function=go></function> and</tool_call>"})
    EXPECT_EQ(read(tool_style::nested, other, 5), std::pair(std::string(other), std::string()));
}

/// The answer is shown while it comes, not held back until it is clear that it is no call.
TEST(tool_calls, do_not_hold_back_what_cannot_be_one) {
  const auto first = [](tool_style style, const char* text) { return tool_call_reader(style, go_and_look).push(text); };
  EXPECT_EQ(first(tool_style::listed, "[link](x)"), "[link](x)");
  EXPECT_EQ(first(tool_style::listed, "[ {"), "");
  EXPECT_EQ(first(tool_style::listed, "[TOOL"), "");
  EXPECT_EQ(first(tool_style::listed, "<b>"), "<b>");
  EXPECT_EQ(first(tool_style::bare, "[1]"), "[1]");
  EXPECT_EQ(first(tool_style::headed, "\ng"), "");
  EXPECT_EQ(first(tool_style::headed, "\ngo\n"), "");
  EXPECT_EQ(first(tool_style::headed, "\nGood"), "\nGood");
  EXPECT_EQ(first(tool_style::headed, "go on"), "go on");
  EXPECT_EQ(first(tool_style::bare, "<|python_tag|>print"), "<|python_tag|>print");
}

TEST(tool_calls, that_are_cut_have_the_arguments_that_came) {
  const auto read_cut = [](tool_style style, const std::string& answer, bool is_call = false) {
    tool_call_reader reader(style, go_and_look, SIZE_MAX, is_call);
    std::string read = reader.push(answer);
    read += reader.finish(true);
    for (const tool_call& each : reader.take_calls())
      read += "|" + each.name + "|" + each.arguments + (each.is_cut ? "|cut" : "");
    return read;
  };
  EXPECT_EQ(read_cut(tool_style::tagged, R"(Hm <tool_call>{"name": "go", "arguments": {"to": "a b)"),
            R"(Hm |go|{"to": "a b|cut)");
  EXPECT_EQ(read_cut(tool_style::bare, R"({"name": "look", "parameters": {"a": [1,)"), R"(|look|{"a": [1,|cut)");
  EXPECT_EQ(read_cut(tool_style::bare, R"({"name": "go", "para)"), "|go||cut");
  EXPECT_EQ(read_cut(tool_style::tagged, "<tool_call>{\"name\": \"go\", \"arguments\": {\"x\": 1}}\n</tool_"),
            R"(|go|{"x":1})");
  EXPECT_EQ(read_cut(tool_style::bare, R"({"name":"go","parameters":{}}; {"name":"look","para)"), "|go|{}|look||cut");
  EXPECT_EQ(read_cut(tool_style::named, R"(Hm [TOOL_CALLS]go[ARGS]{"to": "a)"), R"(Hm |go|{"to": "a|cut)");
  EXPECT_EQ(read_cut(tool_style::named, "[TOOL_CALLS]go[ARGS]"), "|go||cut");
  EXPECT_EQ(read_cut(tool_style::listed, R"([{"name":"go","arguments":{}}, {"na)"), "|go|{}");
  const std::string section = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>";
  EXPECT_EQ(read_cut(tool_style::sectioned, section + R"(go<｜tool▁sep｜>{"to": "a)"), R"(|go|{"to": "a|cut)");
  EXPECT_EQ(read_cut(tool_style::sectioned, section + R"(go<｜tool▁sep｜>{"a": 1}<｜tool▁)"), R"(|go|{"a":1})");
  EXPECT_EQ(read_cut(tool_style::fenced, section + "function<｜tool▁sep｜>go\n```json\n{\"to\": \"`"),
            R"(|go|{"to": "`|cut)");
  EXPECT_EQ(read_cut(tool_style::fenced, section + "function<｜tool▁sep｜>go\n```json\n{\"a\": 1}\n``"),
            R"(|go|{"a":1})");
  EXPECT_EQ(read_cut(tool_style::listed, R"([{"name":"go","arguments":{}})"), "|go|{}");
  EXPECT_EQ(read_cut(tool_style::listed, R"([{"name":"go","arguments":{"to")"), R"(|go|{"to"|cut)");
  EXPECT_EQ(
      read_cut(tool_style::tagged, "<tool_call>\n<function=go>\n<parameter=a>\n1\n</parameter>\n<parameter=to>\nx"),
      R"(|go|{"a":1|cut)");
  EXPECT_EQ(read_cut(tool_style::nested, "<tool_call>go\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>t"),
            R"(|go|{"a":1|cut)");
  EXPECT_EQ(read_cut(tool_style::nested, "<tool_call>go\n<arg_key>to</arg_key>\n<arg_value>on the go"), "|go|{|cut");
  const std::string invoked = "<minimax:tool_call><invoke name=\"go\"><parameter name=\"a\">1</parameter>";
  EXPECT_EQ(read_cut(tool_style::invoked, invoked + "<parameter name=\"to\">x"), R"(|go|{"a":1|cut)");
  EXPECT_EQ(read_cut(tool_style::invoked, invoked + "</invoke><invoke na"), R"(|go|{"a":1})");
  EXPECT_EQ(read_cut(tool_style::seeded, "<seed:tool_call><function=go><parameter=to>x"), "|go|{|cut");
  const auto read_gemma = [&](const std::string& answer) { return read_cut(tool_style::unquoted, answer); };
  EXPECT_EQ(read_gemma(R"(Hm <|tool_call>call:go{a:1,to:<|"|>a "b)"), R"(Hm |go|{"a":1,"to":"a \"b|cut)");
  EXPECT_EQ(read_gemma(R"(<|tool_call>call:go{a:[tr)"), R"(|go|{"a":[|cut)");
  EXPECT_EQ(read_gemma(R"(<|tool_call>call:go{a:12)"), R"(|go|{"a":12|cut)");
  EXPECT_EQ(read_gemma(R"(<|tool_call>call:go{a: )"), R"(|go|{"a":|cut)");
  EXPECT_EQ(read_gemma(R"(<|tool_call>call:go{a:{b:1},way)"), R"(|go|{"a":{"b":1},|cut)");
  EXPECT_EQ(read_gemma(R"(<|tool_call>call:go{"to": "a)"), R"(|go|{"to":"a|cut)");
  EXPECT_EQ(read_gemma(R"(<|tool_call>call:go{a:1}<tool_)"), R"(|go|{"a":1})");
  const auto read_python = [&](const std::string& list) {
    return read_cut(tool_style::pythonic, "<|tool_call_start|>" + list);
  };
  EXPECT_EQ(read_python(R"([go(a=1, to="a 'b)"), R"(|go|{"a":1,"to":"a 'b|cut)");
  EXPECT_EQ(read_python(R"([go(to="""a", b)"), R"(|go|{"to":"a\", b|cut)");
  EXPECT_EQ(read_python("[go(a=[Tr"), R"(|go|{"a":[|cut)");
  EXPECT_EQ(read_python("[go(a=1, t"), R"(|go|{"a":1,|cut)");
  EXPECT_EQ(read_python("[look(), go(a=12"), R"(|look|{}|go|{"a":12|cut)");
  EXPECT_EQ(read_python("[look(), g"), "|look|{}");
  EXPECT_EQ(read_python("[go(a=1)]<|tool_"), R"(|go|{"a":1})");
  EXPECT_EQ(read_python("[go"), "<|tool_call_start|>[go");
  const auto read_actions = [&](const std::string& list) {
    return read_cut(tool_style::actions, "<|START_ACTION|>" + list);
  };
  EXPECT_EQ(read_actions(R"([{"tool_call_id": "0", "tool_name": "go", "parameters": {"to": "a b)"),
            R"(|go|{"to": "a b|cut)");
  EXPECT_EQ(read_actions(R"([{"tool_name": "go", "parameters": {"a": 1}}]<|END_)"), R"(|go|{"a":1})");
  EXPECT_EQ(read_actions(R"([{"tool_name": "look", "parameters": {}}, {"tool_call_id": "1)"), "|look|{}");
  EXPECT_EQ(read_actions(R"([{"tool_call_id": "1", "too)"), R"(<|START_ACTION|>[{"tool_call_id": "1", "too)");
  EXPECT_EQ(read_cut(tool_style::headed, "go\n{\"to\": \"a b"), R"(|go|{"to": "a b|cut)");
  EXPECT_EQ(read_cut(tool_style::headed, "go\n"), "|go||cut");
  EXPECT_EQ(read_cut(tool_style::headed, "look\n{}go\n{\"a"), R"(|look|{}|go|{"a|cut)");
  EXPECT_EQ(read_cut(tool_style::headed, "look\n{}g"), "|look|{}");
  EXPECT_EQ(read_cut(tool_style::headed, "go"), "go");
  for (const char* unnamed : {"<|tool_call>call:go", "<|tool_call>cal", "<|tool_call>call:go{a:1]"})
    EXPECT_EQ(read_gemma(unnamed), unnamed);
  for (const char* none : {"<tool_call>go", "<tool_call>go there and"})
    EXPECT_EQ(read_cut(tool_style::nested, none), none) << "perhaps a longer name, or no call";
  for (const char* whole : {R"({"name":"go","parameters":{}} I will)", R"({"name":"go","parameters":[1]})"})
    EXPECT_EQ(read_cut(tool_style::bare, whole), whole) << "what follows a call is no part of its arguments";
  for (const char* unnamed : {R"(<tool_call>{"name": "g)", R"(<tool_call>{"name": "fly", "argu)", "<tool_c"}) {
    EXPECT_EQ(read_cut(tool_style::tagged, unnamed), unnamed);
    EXPECT_EQ(read_cut(tool_style::tagged, unnamed, true), "") << "there is no text where a call must be made";
  }
}

TEST(tool_calls, are_read_behind_what_only_looks_like_one) {
  const std::string fly = R"(<tool_call>{"name": "fly", "arguments": {}}</tool_call>)", addressed = "[TOOL_CALLS]";
  const std::string look = R"(<tool_call>{"name": "look", "arguments": {}}</tool_call>)";
  for (std::size_t size = 1; size < 60; ++size) {
    EXPECT_EQ(read(tool_style::tagged, fly + "\n" + look + " <tool_call></tool_call>" + look, size),
              std::pair(fly + "\n <tool_call></tool_call>", std::string("look({})look({})")));
    EXPECT_EQ(read(tool_style::named, addressed + "fly[ARGS]{}" + addressed + "look[ARGS]{}", size),
              std::pair(addressed + "fly[ARGS]{}", std::string("look({})")));
  }
}

TEST(tool_calls, stand_where_they_stood_in_the_text) {
  tool_call_reader reader(tool_style::tagged, go_and_look);
  const std::string call = R"(<tool_call>{"name": "go", "arguments": {}}</tool_call>)";
  EXPECT_EQ(reader.push("one" + call + "two" + call), "onetwo");
  const auto calls = reader.take_calls();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].behind, 3u);
  EXPECT_EQ(calls[1].behind, 6u);
}

TEST(tool_calls, leave_the_text_behind_them_as_it_was_written) {
  const std::string call = R"(<tool_call>{"name": "go", "arguments": {}}</tool_call>)";
  for (const std::size_t size : {1u, 3u, 100u}) {
    EXPECT_EQ(read(tool_style::tagged, call + "\nA b", size).first, "\nA b");
    EXPECT_EQ(read(tool_style::tagged, call + "\n" + call + "\n", size).first, "");
  }
}

TEST(tool_calls, are_as_many_as_wanted) {
  tool_call_reader reader(tool_style::tagged, go_and_look, 1);
  const std::string call = R"(<tool_call>{"name": "go", "arguments": {}}</tool_call>)";
  EXPECT_EQ(reader.push(call + call), "");
  EXPECT_EQ(reader.finish(false), "");
  EXPECT_EQ(reader.take_calls().size(), 1u);
}

TEST(tool_calls, leave_other_text_alone) {
  const std::vector<std::string> texts{"a < b <tool",
                                       "<tool_call>nonsense</tool_call> and more",
                                       R"(<tool_call>{"name":"unknown","arguments":{}}</tool_call>)",
                                       R"(<tool_call>{"name": go"}</tool_call> and more)",
                                       "<tool_call>{",
                                       "{\"name\": 1}",
                                       "{not json",
                                       R"([{"name":"go","arguments":{}}] and more)",
                                       R"([{"name":"go","arguments":{}}, {"name":"fly","arguments":{}}])",
                                       "[TOOL_CALLS]",
                                       "plain",
                                       ""};
  for (const std::string& text : texts)
    for (const tool_style style : {tool_style::none, tool_style::tagged, tool_style::bare, tool_style::listed})
      for (const std::size_t size : {1u, 3u, 100u}) {
        const auto [out, calls] = read(style, text, size);
        EXPECT_EQ(out, text);
        EXPECT_EQ(calls, "");
      }
}

TEST(tool_calls, are_read_by_readers_that_share_the_offers) {
  const auto offers = std::make_shared<const std::vector<tool_offer>>(std::vector<tool_offer>{{.name = "go"}});
  const std::vector<tool_call_reader> of_many_answers(100, tool_call_reader(tool_style::tagged, offers));
  EXPECT_EQ(offers.use_count(), 101);
  const tool_call_reader finds_none(tool_style::none, offers);
  EXPECT_EQ(offers.use_count(), 101) << "it needs none";
}

/// What is said last counts; clients read it so.
TEST(tool_calls, may_say_a_thing_twice) {
  EXPECT_EQ(read(tool_style::tagged, R"(<tool_call>{"name": "go", "arguments": {"a": 1, "a": 2}}</tool_call>)", 5),
            std::pair(std::string(), std::string(R"(go({"a":1,"a":2}))")));
  EXPECT_EQ(read(tool_style::bare, R"({"name": "go", "parameters": {"a": 1, "a": 2}})", 5).second,
            R"(go({"a":1,"a":2}))");
  EXPECT_EQ(read(tool_style::bare, R"({"name": "go", "parameters": 1, "name": "look", "parameters": {"a": 1}})", 5),
            std::pair(std::string(), std::string(R"(look({"a":1}))")));
}

TEST(tool_calls, keep_numbers_as_they_were_written) {
  const std::string number = "9400111899223100001234", said = R"(go({"a":[)" + number + R"(,1e2],"b":" \" 1 "}))";
  const std::string arguments = R"({ "a": [)" + number + R"( , 1e2], "b": " \" 1 "} )";
  const auto calls = [](tool_style style, const std::string& answer) { return read(style, answer, 3).second; };
  EXPECT_EQ(calls(tool_style::tagged, R"(<tool_call>{"id": 5, "x": {"arguments": 1}, "arguments": )" + arguments +
                                          R"(, "name": "go"}</tool_call>)"),
            said);
  EXPECT_EQ(calls(tool_style::bare, R"({"name": "go", "parameters": )" + arguments + "}"), said);
  EXPECT_EQ(calls(tool_style::named, "[TOOL_CALLS]go[ARGS]" + arguments), said);
  EXPECT_EQ(calls(tool_style::bare, R"({"name": "go", "p\u0061rameters": {"a": 1}})"), R"(go({"a":1}))")
      << "however the key is written";
  const std::string told = R"(go({"n":)" + number + "})";
  EXPECT_EQ(calls(tool_style::nested,
                  "<tool_call>go<arg_key>n</arg_key><arg_value>1</arg_value><arg_key>n</arg_key>"
                  "<arg_value>" +
                      number + "</arg_value></tool_call>"),
            told)
      << "the last of two counts";
  EXPECT_EQ(calls(tool_style::nested,
                  "<tool_call><function=go><parameter=n>" + number + "</parameter></function></tool_call>"),
            told);
}

}  // namespace
}  // namespace troupe::test
