#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/chat/render.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using testing::HasSubstr;

std::string repeated(std::string_view piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

render_options tight() {
  render_options options;
  options.limits.steps = 100'000;
  options.limits.bytes = 1'000'000;
  return options;
}

std::string refused_when_tight(std::string_view source) {
  return refusal_of(source, json::object(), tight());
}

constexpr std::string_view many_rounds = "{% for i in range(99999) %}";

TEST(chat_limits, end_endless_work) {
  EXPECT_THAT(refused_when_tight(std::string(many_rounds) + "{% for j in range(99999) %}{% endfor %}{% endfor %}"),
              HasSubstr("more than 100000 evaluation steps"));
}

TEST(chat_limits, end_work_hidden_in_single_operations) {
  const std::string head = "{% set s = 'a' * 500000 %}" + std::string(many_rounds);
  EXPECT_THAT(refused_when_tight(head + "{{ 'b' in s }}{% endfor %}"), HasSubstr("evaluation steps"));
  EXPECT_THAT(refused_when_tight(head + "{{ s|length }}{% endfor %}"), HasSubstr("evaluation steps"));
  EXPECT_THAT(refused_when_tight(head + "{% if s == s %}{% endif %}{% endfor %}"), HasSubstr("evaluation steps"));
}

TEST(chat_limits, end_growing_text) {
  EXPECT_THAT(refused_when_tight("{% set ns = namespace(s='x') %}{% for i in range(99) %}"
                                 "{% set ns.s = ns.s + ns.s %}{% endfor %}"),
              HasSubstr("builds more than 1000000 bytes"));
  EXPECT_THAT(refused_when_tight("{{ 'x' * 2000000 }}"), HasSubstr("bytes"));
  EXPECT_THAT(refused_when_tight("{{ ('x' * 10000)|replace('x', 'y' * 10000) }}"), HasSubstr("bytes"));
  EXPECT_THAT(refused_when_tight("{{ ([('x' * 10000)] * 10000)|join }}"), HasSubstr("bytes"));
  EXPECT_THAT(refused_when_tight(std::string(many_rounds) + "0123456789ab{% endfor %}"), HasSubstr("the template"));
}

TEST(chat_limits, end_growing_lists) {
  EXPECT_THAT(refused_when_tight("{{ [1] * 1000000000 }}"), HasSubstr("the template"));
  EXPECT_THAT(refused_when_tight("{{ 'x' * (2 ** 100) }}"), HasSubstr("repeating something"));
  EXPECT_THAT(refused_when_tight("{{ (' \n' * 400000).splitlines() }}"), HasSubstr("the template"));
  EXPECT_THAT(refused_when_tight("{{ [1]|batch(2 ** 100, 0)|list }}"), HasSubstr("the template"));
  EXPECT_THAT(refused_when_tight("{{ [1]|slice(2 ** 100)|list }}"), HasSubstr("the template"));
  EXPECT_THAT(refused_when_tight("{{ range(50000)|batch(1)|list }}"), HasSubstr("the template"));
}

TEST(chat_limits, end_values_that_print_exponentially) {
  const std::string doubling =
      "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  EXPECT_THAT(refused_when_tight(doubling + "{{ ns.x }}"), HasSubstr("the template"));
  EXPECT_THAT(refused_when_tight(doubling + "{{ ns.x|tojson }}"), HasSubstr("the template"));
  EXPECT_THAT(refused_when_tight(doubling + "{% set a = ns.x %}{{ [a, 1] == [a, 2] }}"), HasSubstr("the template"));
}

TEST(chat_limits, end_endless_recursion) {
  EXPECT_THAT(refusal_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("levels of evaluation"));
  EXPECT_THAT(refusal_of("{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("levels of evaluation"));
  EXPECT_THAT(refusal_of("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}"), HasSubstr("levels of evaluation"));
}

TEST(chat_limits, leave_room_for_the_recursion_of_real_templates) {
  EXPECT_EQ(render("{% for n in [50] recursive %}{% if n %}x{{ loop([n - 1]) }}{% endif %}{% endfor %}"),
            std::string(50, 'x'));
  EXPECT_EQ(render("{% macro f(n) %}{% if n %}{{ 'x' + f(n - 1) }}{% endif %}{% endmacro %}{{ f(50) }}"),
            std::string(50, 'x'));
}

TEST(chat_limits, end_deep_nesting_of_values) {
  const std::string nesting = "{% set ns = namespace(x=1) %}{% for i in range(500) %}{% set ns.x = ";
  EXPECT_THAT(refusal_of(nesting + "[ns.x] %}{% endfor %}"), HasSubstr("nested more than"));
  EXPECT_THAT(refusal_of(nesting + "{'a': ns.x} %}{% endfor %}"), HasSubstr("nested more than"));
  EXPECT_THAT(refusal_of(nesting + "cycler(ns.x).next %}{% endfor %}"), HasSubstr("nested more than"));
  EXPECT_THAT(refusal_of(nesting + "joiner(ns.x) %}{% endfor %}"), HasSubstr("nested more than"));
  json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = json::array({std::move(deep)});
  EXPECT_THAT(refusal_of("x", {{"deep", std::move(deep)}}), HasSubstr("nested more than"));
}

TEST(chat_limits, end_deep_nesting_of_the_source) {
  const std::size_t deep = 20'000;
  for (const std::string_view opening : {"(", "[", "{1:", "-", "not ", "f(", "1 if 1 else ", "x[", "{{"}) {
    EXPECT_NE(refusal_of("{{ " + repeated(opening, deep)), "") << opening;
  }
  for (const std::string_view chain : {".a", "[0]", "()", "|trim", " + 1", " or 1", " if 1"}) {
    EXPECT_THAT(refusal_of("{{ x" + repeated(chain, deep) + " }}"), HasSubstr("levels")) << chain;
  }
  EXPECT_THAT(refusal_of(repeated("{% if 1 %}", deep)), HasSubstr("levels of nesting"));
  EXPECT_THAT(refusal_of("{% for " + repeated("(", deep) + repeated(")", deep) + " in x %}{% endfor %}"),
              HasSubstr("levels of nesting"));
}

TEST(chat_limits, do_not_leak_or_recurse_over_what_holds_each_other) {
  EXPECT_EQ(render("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me is defined }}"), "True");
  EXPECT_EQ(render("{% set ns = namespace(x=0) %}{% for i in range(50000) %}{% set ns.x = namespace(last=ns.x) %}"
                   "{% endfor %}done"),
            "done");
  EXPECT_EQ(render("{% macro keep(m) %}{% macro inner() %}{{ m is defined }}{% endmacro %}{% set ns.m = inner %}"
                   "{% endmacro %}{% set ns = namespace(m=0) %}{% for i in range(20000) %}{{ keep(ns.m) }}{% endfor %}"
                   "{{ ns.m() }}"),
            "True");
  EXPECT_EQ(render("{% set ns = namespace(m=0) %}{% for i in range(20000) %}{% set last = ns.m %}"
                   "{% for j in [1] recursive %}{% set ns.m = loop %}{% endfor %}{% endfor %}{{ ns.m([1]) }}done"),
            "done");
  EXPECT_EQ(render("{% set ns = namespace(m=0) %}{% for i in range(20000) %}{% for j in [1] %}"
                   "{% if loop.changed(loop, ns.m) %}{% set ns.m = loop %}{% endif %}{% endfor %}{% endfor %}done"),
            "done");
}

TEST(chat_limits, allow_long_conversations) {
  json messages = json::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(500, 'x')}});
  }
  const std::string text = render(
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}"
      "{% endif %}{{ '<' + m.role + '>' + m.content|trim + '</s>' }}{% endfor %}",
      {{"messages", std::move(messages)}});
  EXPECT_GT(text.size(), 1'000'000U);
}

}  // namespace
}  // namespace troupe
