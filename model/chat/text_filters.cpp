#include <algorithm>
#include <string>

#include "model/chat/filters.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/printing.hpp"
#include "model/chat/text.hpp"
#include "model/chat/text_functions.hpp"

namespace troupe::detail::jinja {
namespace {

value trim(budget& cost, const value& subject, arguments&& given) {
  const parameters p("trim", std::move(given), {"chars"});
  return strip_text(cost, printed(cost, subject), side::both, p);
}

using text_change = std::string (*)(std::string_view);
constexpr std::pair<std::string_view, text_change> changes[] = {
    {"upper", upper}, {"lower", lower}, {"capitalize", capitalize}};

template <std::size_t Which>
value changed(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing(changes[Which].first, std::move(given), {});
  return make_text(changes[Which].second(printed(cost, subject)));
}

bool parts_words(char32_t point) {
  constexpr std::u32string_view separators = U"-({[<";
  return is_space(point) || separators.find(point) != separators.npos;
}

// Not str.title(): the filter knows words by the white space, dashes and brackets between them.
value to_title(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing("title", std::move(given), {});
  const std::string text = printed(cost, subject);
  std::string out;
  bool starts = true;
  for_each_point(text, [&](const code_point& next, std::string_view bytes) {
    if (next.valid)
      append_utf8(out, starts ? to_upper(next.value) : to_lower(next.value));
    else
      out += bytes;
    starts = parts_words(next.value);
  });
  return make_text(std::move(out));
}

value replace_filter(budget& cost, const value& subject, arguments&& given) {
  const parameters p("replace", std::move(given), {"old", "new", "count"}, 2);
  const integer count = p.given(2) ? p.number(2, -1) : -1;
  const std::string old = printed(cost, p.at(0));
  return make_text(replace_text(cost, printed(cost, subject), old, printed(cost, p.at(1)), count));
}

std::string indentation(const parameters& p, std::size_t index, integer otherwise) {
  if (p.find(index) && text_of(p.at(index))) return *text_of(p.at(index));
  const integer width = p.number(index, otherwise);
  constexpr integer widest = 1000;
  if (width > widest) fail("an indentation of {} is too wide", width);
  return std::string(width > 0 ? static_cast<std::size_t>(width) : 0, ' ');
}

value indent(budget& cost, const value& subject, arguments&& given) {
  const parameters p("indent", std::move(given), {"width", "first", "blank"});
  if (!text_of(subject)) fail("indent needs a string, not {}", type_name(subject));
  const std::string indention = indentation(p, 0, 4);
  const std::string text = *text_of(subject) + "\n";
  text_builder out(cost);
  bool first = true;
  for (const std::string_view line : split_lines(cost, text)) {
    if (!first) out.append('\n');
    if (first ? p.flag(1, false) : p.flag(2, false) || !line.empty()) out.append(indention);
    first = false;
    out.append(line);
  }
  return make_text(out.take());
}

value escape(budget& cost, const value& subject, arguments&& given) {
  static constexpr std::pair<char, std::string_view> escapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&#34;"}, {'\'', "&#39;"}};
  const parameters nothing("escape", std::move(given), {});
  text_builder out(cost);
  for (const char c : printed(cost, subject)) {
    const auto* found = std::ranges::find(escapes, c, &std::pair<char, std::string_view>::first);
    out.append(found == std::end(escapes) ? std::string_view(&c, 1) : found->second);
  }
  return make_text(out.take());
}

value to_text(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing("string", std::move(given), {});
  return text_of(subject) ? subject : make_text(printed(cost, subject));
}

value format(budget& cost, const value& subject, arguments&& given) {
  if (!given.positional.empty() && !given.named.empty()) fail("format takes arguments by place or by name, not both");
  return format_percent(cost, printed(cost, subject), given);
}

value tojson(budget& cost, const value& subject, arguments&& given) {
  const parameters p("tojson", std::move(given), {"ensure_ascii", "indent", "separators", "sort_keys"});
  json_style style;
  style.ascii_only = p.flag(0, false);
  style.sorted_keys = p.flag(3, false);
  if (p.given(1)) {
    style.indent = indentation(p, 1, 0);
    style.item_separator = ",";
  }
  if (const value* separators = p.given(2)) {
    const sequence_ptr pair = iterate(cost, *separators);
    if (pair->items.size() != 2) fail("tojson: separators are two strings");
    style.item_separator = printed(cost, pair->items[0]);
    style.key_separator = printed(cost, pair->items[1]);
  }
  text_builder out(cost);
  print_json(out, subject, style);
  return make_text(out.take());
}

}  // namespace

filter find_text_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, filter> table[] = {
      {"trim", trim},      {"upper", changed<0>},       {"lower", changed<1>}, {"capitalize", changed<2>},
      {"title", to_title}, {"replace", replace_filter}, {"indent", indent},    {"escape", escape},
      {"e", escape},       {"forceescape", escape},     {"safe", to_text},     {"string", to_text},
      {"format", format},  {"tojson", tojson},
  };
  return find_function(table, name);
}

}  // namespace troupe::detail::jinja
