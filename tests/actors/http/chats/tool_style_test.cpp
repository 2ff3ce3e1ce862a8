#include "actors/http/chats/tool_style.hpp"

#include <gtest/gtest.h>

namespace troupe::test {
namespace {

std::vector<tool_style> all_tool_styles() {
  std::vector<tool_style> all;
  for (int i = 0; i <= static_cast<int>(tool_style::listed); ++i) all.push_back(static_cast<tool_style>(i));
  return all;
}

TEST(tool_style, is_that_of_the_templates_family) {
  EXPECT_EQ(tool_style_of("{% if tools %}<tool_call>{% endif %}"), tool_style::tagged);
  EXPECT_EQ(tool_style_of("{% if tools %}<tool_call>\n<function=x>{% endif %}"), tool_style::nested);
  EXPECT_EQ(tool_style_of("{% if tools %}<seed:tool_call>\n<function=x>{% endif %}"), tool_style::seeded);
  EXPECT_EQ(tool_style_of("{% if tools %}<minimax:tool_call>\n<invoke name={% endif %}"), tool_style::invoked);
  EXPECT_EQ(tool_style_of("{% if tools %}<tool_call>{name}<arg_key>{% endif %}"), tool_style::nested);
  EXPECT_EQ(tool_style_of("{% if tools %}{\"name\": x, \"parameters\": y}{% endif %}"), tool_style::bare);
  EXPECT_EQ(tool_style_of("{% if tools %}[TOOL_CALLS]{% endif %}"), tool_style::listed);
  EXPECT_EQ(tool_style_of("{% if tools %}[TOOL_CALLS]{{ name }}[ARGS]{% endif %}"), tool_style::named);
  EXPECT_EQ(tool_style_of("{% if tools %}respond with <|tool_call|>{% endif %}"), tool_style::listed);
  EXPECT_EQ(tool_style_of("{% if 'tools' in message %}<|tool|>{% endif %}"), tool_style::listed);
  EXPECT_EQ(tool_style_of("{% if tools %}<|tool_call>call:{{ name }}{% endif %}"), tool_style::unquoted);
  EXPECT_EQ(tool_style_of("{{ '<｜tool▁calls▁begin｜>' + name + '<｜tool▁sep｜>' }}"), tool_style::sectioned);
  EXPECT_EQ(tool_style_of("{{ '<｜tool▁calls▁begin｜>' + type + '<｜tool▁sep｜>' + name + '```json' }}"),
            tool_style::fenced);
  EXPECT_EQ(tool_style_of("{% if tools %}<|tool_list_start|>[{% endif %}"), tool_style::pythonic);
  EXPECT_EQ(tool_style_of("{% if tools %}<|im_start|>system List of tools: [{% endif %}"), tool_style::pythonic);
  EXPECT_EQ(tool_style_of("{% if tools %}{{ '<|tool_call_start|>[' + name + '(' }}{% endif %}"), tool_style::pythonic);
  EXPECT_EQ(tool_style_of("{% if tools %}List of tools: [{% endif %}"), tool_style::none);
  EXPECT_EQ(tool_style_of("{% if tools %}<|START_ACTION|>[{\"parameters\": {}}]{% endif %}"), tool_style::actions);
  EXPECT_EQ(tool_style_of("{% if tools %}在调用上述函数时，请使用 Json 格式表示调用的参数。{% endif %}"),
            tool_style::headed);
  EXPECT_EQ(tool_style_of("{{ messages }}"), tool_style::none);
}

TEST(tool_style, has_one_notation) {
  for (const tool_style style : all_tool_styles()) EXPECT_EQ(notation_of(style).style, style);
}

TEST(tool_style, marks_calls_or_takes_the_whole_answer_for_them) {
  for (const tool_style style : all_tool_styles()) {
    const call_notation& by = notation_of(style);
    const int number = static_cast<int>(style);
    EXPECT_FALSE(by.address && by.has_forms) << number << ": a form names the function, or the call's beginning does";
    EXPECT_TRUE(by.has_tags() || !by.may_be_special) << number << ": what is special are tags";
    EXPECT_EQ(by.inner.opening.empty(), by.reads != call_text::section && by.reads != call_text::fenced) << number;
    const bool has_name_and_body = by.address && !by.address->behind.empty();
    EXPECT_TRUE(!by.tags.opening.empty() == !by.tags.closing.empty() || has_name_and_body)
        << number << ": something closes a call, or it ends with its arguments";
  }
}

TEST(tool_style, begins_a_call_with_its_address) {
  EXPECT_EQ(begun_call(tool_style::channels, "go"),
            "<|channel|>commentary to=functions.go <|constrain|>json<|message|>");
  EXPECT_EQ(begun_call(tool_style::named, "go"), "[TOOL_CALLS]go[ARGS]");
  EXPECT_EQ(begun_call(tool_style::unquoted, "go"), "<|tool_call>call:go");
  EXPECT_EQ(begun_call(tool_style::sectioned, "go"), "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>go<｜tool▁sep｜>");
  EXPECT_EQ(begun_call(tool_style::fenced, "go"),
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>go\n```json\n");
  EXPECT_EQ(begun_call(tool_style::headed, "go"), "go\n");
}

}  // namespace
}  // namespace troupe::test
