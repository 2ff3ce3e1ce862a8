#include <algorithm>
#include <limits>

#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/text.hpp"
#include "model/chat/text_functions.hpp"

namespace troupe::detail::jinja {
namespace {

const std::string& own(const method_call& call) {
  return *text_of(call.self);
}

value strip_from(method_call& call, side from) {
  const parameters p = call.takes({"chars"});
  return strip_text(call.cost, own(call), from, p);
}

// str.split and str.rsplit, on white space when there is no separator.
value split_from(method_call& call, bool from_right) {
  const parameters p = call.takes({"sep", "maxsplit"});
  const integer most = p.number(1, -1);
  const std::size_t limit = most < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(most);
  const bool spaces = !p.given(0);
  const std::string separator = spaces ? "" : p.text(0, "");
  if (!spaces && separator.empty()) fail("{}: the separator is empty", call.name);
  const std::vector<std::string_view> parts = spaces ? split_spaces(call.cost, own(call), limit, from_right)
                                                     : split_text(call.cost, own(call), separator, limit, from_right);
  return text_list(call.cost, parts);
}

// The part of a text between two positions, as find() and startswith() look at it.
struct window {
  std::string_view text;
  integer start;
  bool outside;  // it would begin behind the end
};

integer position(const parameters& p, std::size_t index, integer otherwise, integer size) {
  if (!p.given(index)) return otherwise;
  const integer number = p.number(index, otherwise);
  return std::max(integer{0}, number < 0 ? number + size : number);
}

window looked_at(const parameters& p, std::string_view text) {
  if (!p.find(1) && !p.find(2)) return {text, 0, false};
  const auto size = static_cast<integer>(code_points(text));
  const integer start = position(p, 1, 0, size);
  const integer stop = std::min(size, position(p, 2, size, size));
  if (start >= stop) return {"", start, start > size || start > stop};
  const std::size_t begin = byte_offset(text, static_cast<std::size_t>(start));
  const std::size_t end = byte_offset(text, static_cast<std::size_t>(stop));
  return {text.substr(begin, end - begin), start, false};
}

value ends(method_call& call, bool at_start) {
  const parameters p = call.takes({"prefix", "start", "end"}, 1);
  const window seen = looked_at(p, own(call));
  if (seen.outside) return make_bool(false);
  const sequence* several = sequence_of(p.at(0));
  const std::vector<value> wanted = several ? several->items : std::vector<value>{p.at(0)};
  call.cost.step(wanted.size());
  return make_bool(std::any_of(wanted.begin(), wanted.end(), [&](const value& v) {
    const std::string* text = text_of(v);
    if (!text) fail("{} needs a string or a tuple of strings, not {}", call.name, type_name(v));
    return at_start ? seen.text.starts_with(*text) : seen.text.ends_with(*text);
  }));
}

value find_from(method_call& call, bool last) {
  const parameters p = call.takes({"sub", "start", "end"}, 1);
  const window seen = looked_at(p, own(call));
  const std::string wanted = p.text(0, "");
  const std::size_t at = last ? find_last_text(call.cost, seen.text, wanted) : find_text(seen.text, wanted);
  if (at == std::string::npos || seen.outside) return make_integer(-1);
  return make_integer(seen.start + static_cast<integer>(code_points(seen.text.substr(0, at))));
}

value index_from(method_call& call, bool last) {
  value found = find_from(call, last);
  if (*found.as<integer>() < 0) fail("{}: the substring is not there", call.name);
  return found;
}

value partition_at(method_call& call, bool last) {
  const parameters p = call.takes({"sep"}, 1);
  const std::string wanted = p.text(0, "");
  if (wanted.empty()) fail("{}: the separator is empty", call.name);
  const std::string& text = own(call);
  const std::size_t at = last ? find_last_text(call.cost, text, wanted) : find_text(text, wanted);
  std::vector<value> parts(3, make_text(""));
  if (at == text.npos) {
    parts[last ? 2 : 0] = call.self;
  } else {
    parts = {make_text(text.substr(0, at)), make_text(wanted), make_text(text.substr(at + wanted.size()))};
  }
  return make_sequence(sequence_kind::tuple, std::move(parts));
}

value without(method_call& call, bool at_start) {
  const parameters p = call.takes({"affix"}, 1);
  const std::string affix = p.text(0, "");
  const std::string& text = own(call);
  if (!(at_start ? text.starts_with(affix) : text.ends_with(affix))) return call.self;
  return make_text(at_start ? text.substr(affix.size()) : text.substr(0, text.size() - affix.size()));
}

value replace(method_call& call) {
  const parameters p = call.takes({"old", "new", "count"}, 2);
  return make_text(replace_text(call.cost, own(call), p.text(0, ""), p.text(1, ""), p.number(2, -1)));
}

value join(method_call& call) {
  const parameters p = call.takes({"iterable"}, 1);
  text_builder out(call.cost);
  bool first = true;
  const sequence_ptr items = iterate(call.cost, p.at(0));
  for (const value& item : items->items) {
    if (!text_of(item)) fail("join needs strings, not {}", type_name(item));
    if (!std::exchange(first, false)) out.append(own(call));
    out.append(*text_of(item));
  }
  return make_text(out.take());
}

value count(method_call& call) {
  const parameters p = call.takes({"sub", "start", "end"}, 1);
  const window seen = looked_at(p, own(call));
  const std::string wanted = p.text(0, "");
  if (seen.outside) return make_integer(0);
  if (wanted.empty()) return make_integer(static_cast<integer>(code_points(seen.text)) + 1);
  integer found = 0;
  for (std::size_t at = 0; (at = find_text(seen.text, wanted, at)) != seen.text.npos; at += wanted.size()) ++found;
  return make_integer(found);
}

value split_to_lines(method_call& call) {
  const parameters p = call.takes({"keepends"});
  return text_list(call.cost, split_lines(call.cost, own(call), p.flag(0, false)));
}

value pad(method_call& call, bool left) {
  const parameters p = call.takes({"width", "fillchar"}, 1);
  const std::string fill = p.text(1, " ");
  if (code_points(fill) != 1) fail("{} fills with one character", call.name);
  text_builder out(call.cost);
  if (left) out.append(own(call));
  for (auto i = static_cast<integer>(code_points(own(call))); i < p.number(0, 0); ++i) {
    call.cost.step();
    out.append(fill);
  }
  if (!left) out.append(own(call));
  return make_text(out.take());
}

using trait = bool (*)(char32_t);

bool all_points(std::string_view text, trait holds) {
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode(text, at);
    if (!holds(next.value)) return false;
    at += next.length;
  }
  return true;
}

bool is_digit(char32_t point) {
  return point >= '0' && point <= '9';
}
bool is_letter_or_digit(char32_t point) {
  return is_letter(point) || is_digit(point);
}
bool is_caseless(char32_t point) {
  constexpr char32_t sharp_s = 0xDF;
  return point != sharp_s && to_upper(point) == point && to_lower(point) == point;
}

using text_mapping = std::string (*)(std::string_view);

value is_cased(method_call& call, text_mapping mapped) {
  call.takes({});
  return make_bool(!all_points(own(call), is_caseless) && mapped(own(call)) == own(call));
}

value mapped(method_call& call, text_mapping mapping) {
  call.takes({});
  return make_text(mapping(own(call)));
}

value all_are(method_call& call, trait holds) {
  call.takes({});
  return make_bool(!own(call).empty() && all_points(own(call), holds));
}

constexpr std::pair<std::string_view, method> table[] = {
    {"strip", [](method_call& call) { return strip_from(call, side::both); }},
    {"lstrip", [](method_call& call) { return strip_from(call, side::left); }},
    {"rstrip", [](method_call& call) { return strip_from(call, side::right); }},
    {"split", [](method_call& call) { return split_from(call, false); }},
    {"rsplit", [](method_call& call) { return split_from(call, true); }},
    {"splitlines", split_to_lines},
    {"startswith", [](method_call& call) { return ends(call, true); }},
    {"endswith", [](method_call& call) { return ends(call, false); }},
    {"removeprefix", [](method_call& call) { return without(call, true); }},
    {"removesuffix", [](method_call& call) { return without(call, false); }},
    {"find", [](method_call& call) { return find_from(call, false); }},
    {"rfind", [](method_call& call) { return find_from(call, true); }},
    {"index", [](method_call& call) { return index_from(call, false); }},
    {"rindex", [](method_call& call) { return index_from(call, true); }},
    {"partition", [](method_call& call) { return partition_at(call, false); }},
    {"rpartition", [](method_call& call) { return partition_at(call, true); }},
    {"replace", replace},
    {"join", join},
    {"count", count},
    {"format", [](method_call& call) { return format_braces(call.cost, own(call), call.given); }},
    {"ljust", [](method_call& call) { return pad(call, true); }},
    {"rjust", [](method_call& call) { return pad(call, false); }},
    {"upper", [](method_call& call) { return mapped(call, upper); }},
    {"lower", [](method_call& call) { return mapped(call, lower); }},
    {"casefold", [](method_call& call) { return mapped(call, lower); }},
    {"title", [](method_call& call) { return mapped(call, title); }},
    {"capitalize", [](method_call& call) { return mapped(call, capitalize); }},
    {"isspace", [](method_call& call) { return all_are(call, is_space); }},
    {"isdigit", [](method_call& call) { return all_are(call, is_digit); }},
    {"isnumeric", [](method_call& call) { return all_are(call, is_digit); }},
    {"isdecimal", [](method_call& call) { return all_are(call, is_digit); }},
    {"isalpha", [](method_call& call) { return all_are(call, is_letter); }},
    {"isalnum", [](method_call& call) { return all_are(call, is_letter_or_digit); }},
    {"isupper", [](method_call& call) { return is_cased(call, upper); }},
    {"islower", [](method_call& call) { return is_cased(call, lower); }},
};

}  // namespace

method find_text_method(std::string_view name) {
  return find_function(table, name);
}

}  // namespace troupe::detail::jinja
