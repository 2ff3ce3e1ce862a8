#include <cstdlib>
#include <ctime>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/chat/render.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST(chat_refusals, name_the_unknown_and_where_it_stands) {
  EXPECT_EQ(refusal_of("a\n{% include 'x' %}"),
            "test: line 2, column 4: the tag 'include' is unknown or out of place here");
  EXPECT_EQ(refusal_of("{{ x\n  | frobnicate }}"), "test: line 2, column 5: there is no filter named 'frobnicate'");
  EXPECT_EQ(refusal_of("{{ x is shiny }}"), "test: line 1, column 9: there is no test named 'shiny'");
  EXPECT_EQ(refusal_of("{% for x in [1] %}\n{{ loop(x) }}{% endfor %}"),
            "test: line 2, column 8: a loop can only be called if its block is recursive: for … in … recursive");
  EXPECT_EQ(refusal_of("{{ [1]|slice(0) }}"), "test: line 1, column 7: slice: the number of slices cannot be zero");
}

TEST(chat_refusals, of_unknown_filters_and_tests_in_branches_come_where_these_are_taken) {
  EXPECT_EQ(render("{% if true %}ok{% elif 1|nope %}{{ 1|nope }}{% else %}{{ 1|nope }}{% endif %}"), "ok");
  EXPECT_EQ(render("{% if false %}{{ 'a'|nope }}{% for i in [1] %}{{ i is shiny }}{% endfor %}{% endif %}ok"), "ok");
  EXPECT_EQ(render("{{ 1|nope if false else 2 }}{{ 3 if true else 4 is shiny }}"), "23");
  EXPECT_EQ(render("{% if false %}{% filter nope %}a{% endfilter %}{% endif %}ok"), "ok");
  EXPECT_EQ(refusal_of("{% if true %}{{ 1|nope }}{% endif %}"),
            "test: line 1, column 18: there is no filter named 'nope'");
  EXPECT_EQ(refusal_of("{{ 2 if 1 is shiny }}"), "test: line 1, column 11: there is no test named 'shiny'");
  EXPECT_EQ(refusal_of("{{ 1|nope }}{% if false %}{{ 1|worse }}{% endif %}"),
            "test: line 1, column 6: there is no filter named 'nope'");
}

TEST(chat_refusals, count_columns_in_characters) {
  EXPECT_THAT(refusal_of("é你🙂{{ x | nope }}"), StartsWith("test: line 1, column 11:"));
}

TEST(chat_refusals, of_broken_syntax_say_what_was_expected) {
  EXPECT_EQ(refusal_of("{% if x %}a"), "test: line 1, column 12: expected {% endif %}, found the end of the template");
  EXPECT_EQ(refusal_of("{{ x "), "test: line 1, column 1: {{ is never closed");
  EXPECT_EQ(refusal_of("{{ 'x }}"), "test: line 1, column 4: the string is never closed");
  EXPECT_EQ(refusal_of("{# x"), "test: line 1, column 1: the comment is never closed with #}");
  EXPECT_EQ(refusal_of("{% raw %} x"), "test: line 1, column 1: the raw block is never closed with endraw");
  EXPECT_EQ(refusal_of("{{ (1] }}"), "test: line 1, column 6: unexpected ']'");
  EXPECT_EQ(refusal_of("{{ f(a=1, 2) }}"),
            "test: line 1, column 11: expected only named arguments after a named one, found '2'");
  EXPECT_EQ(refusal_of("{% continue %}"), "test: line 1, column 4: continue outside of a loop");
}

TEST(chat_refusals, while_rendering_name_the_innermost_place) {
  EXPECT_EQ(refusal_of("{{ 1 }}\n{{ messages[0].role.x.y }}", {{"messages", {{{"role", "user"}}}}}),
            "test: line 2, column 22: str has no attribute 'x'");
  EXPECT_EQ(refusal_of("{{ missing + 1 }}"), "test: line 1, column 12: 'missing' is undefined");
  EXPECT_EQ(refusal_of("{% macro m() %}\n{{ 1 / 0 }}{% endmacro %}{{ m() }}"),
            "test: line 2, column 6: division by zero");
}

TEST(chat_refusals, of_formats_name_those_that_are_not_imitated) {
  EXPECT_THAT(refusal_of("{{ '{:.3}'.format(1e3) }}"), HasSubstr("format: the format spec '.3' is not supported for"));
  for (const auto* use : {"'{:010}'.format(1.5)", "'{:+}'.format(1.5)", "'{:05}'.format('a')", "'{:<05d}'.format(3)",
                          "'{:^5}'.format('a')", "'{:,}'.format(1000)"})
    EXPECT_THAT(refusal_of(fmt::format("{{{{ {} }}}}", use)), HasSubstr("is not supported for")) << use;
}

TEST(chat_refusals, carry_what_the_template_raised) {
  EXPECT_EQ(refusal_of("{% if true %}\n  {{ raise_exception('roles must alternate') }}{% endif %}"),
            "test: line 2, column 21: roles must alternate");
}

TEST(chat_refusals, of_changes_in_place_say_why) {
  EXPECT_THAT(refusal_of("{{ l.append(1) }}", {{"l", json::array()}}),
              HasSubstr("list.append changes the list in place, which templates may not do"));
  EXPECT_THAT(refusal_of("{{ d.update({}) }}", {{"d", json::object()}}), HasSubstr("dict.update"));
}

TEST(chat_refusals, include_sources_that_are_not_utf8) {
  EXPECT_EQ(refusal_of("\xff"), "test: the chat template is not UTF-8");
  EXPECT_THAT(refusal_of("{{ '\\ud800' }}"), HasSubstr("no Unicode character"));
}

TEST(chat_refusals, include_variables_that_are_no_object) {
  EXPECT_EQ(refusal_of("x", json::array()), "test: a template's variables are an object");
}

TEST(chat_rendering, passes_unusual_text_through_unharmed) {
  EXPECT_EQ(render("{{ x }}|{{ x|upper }}|{{ x[0] }}", {{"x",
                                                         "\xff"
                                                         "a"}}),
            "\xff"
            "a|\xff"
            "A|\xff");
  EXPECT_EQ(render(""), "");
  EXPECT_EQ(render("no tags { % } }} %}"), "no tags { % } }} %}");
}

TEST(chat_rendering, takes_the_time_it_is_given) {
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y') }}"), "26 Jul 2024");
  render_options later = at_fixed_time();
  *later.now += std::chrono::hours(24);
  EXPECT_EQ(render("{{ strftime_now('%d') }}", json::object(), later), "27");
}

TEST(chat_rendering, takes_the_time_it_is_given_for_one_in_utc) {
  ::setenv("TZ", "EAST-14", 1);
  ::tzset();
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y %H:%M') }}"), "26 Jul 2024 12:00");
  ::unsetenv("TZ");
  ::tzset();
}

TEST(chat_rendering, can_be_repeated) {
  const chat_template greeting("{% set ns = namespace(n=0) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{{ name }}", "test");
  EXPECT_EQ(greeting.render({{"name", "a"}}), "1a");
  EXPECT_EQ(greeting.render({{"name", "b"}}), "1b");
}

}  // namespace
}  // namespace troupe
