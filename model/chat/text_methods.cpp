#include <algorithm>
#include <limits>

#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/printing.hpp"
#include "model/chat/text.hpp"
#include "model/chat/text_functions.hpp"

namespace troupe::detail::jinja {
namespace {

using arguments_in = arguments&&;

const std::string& own(const value& self) {
  return *text_of(self);
}

value strip_from(runtime& run, const value& self, arguments_in given, std::string_view name, side from) {
  const parameters p(name, std::move(given), {"chars"});
  if (!p.find(0) || p.at(0).is<none>()) return make_text(std::string(strip(own(self), from)));
  return make_text(std::string(strip_set(run.cost, own(self), from, p.text(0, ""))));
}

// str.split and str.rsplit, on white space when there is no separator.
value split_from(runtime& run, const value& self, arguments_in given, std::string_view name, bool from_right) {
  const parameters p(name, std::move(given), {"sep", "maxsplit"});
  const integer most = p.number(1, -1);
  const std::size_t limit = most < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(most);
  const bool spaces = !p.find(0) || p.at(0).is<none>();
  const std::string separator = spaces ? "" : p.text(0, "");
  if (!spaces && separator.empty()) fail("{}: the separator is empty", name);
  const std::vector<std::string_view> parts = spaces ? split_spaces(run.cost, own(self), limit, from_right)
                                                     : split_text(run.cost, own(self), separator, limit, from_right);
  return text_list(run.cost, parts);
}

// The part of a text between two positions, as find() and startswith() look at it.
struct window {
  std::string_view text;
  integer start;
  bool outside;  // it would begin behind the end
};

integer position(const parameters& p, std::size_t index, integer otherwise, integer size) {
  if (!p.find(index) || p.at(index).is<none>()) return otherwise;
  const integer given = p.number(index, otherwise);
  return std::max(integer{0}, given < 0 ? given + size : given);
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

value ends(runtime& run, const value& self, arguments_in given, std::string_view name, bool at_start) {
  const parameters p(name, std::move(given), {"prefix", "start", "end"}, 1);
  const window seen = looked_at(p, own(self));
  if (seen.outside) return make_bool(false);
  const sequence_ptr* several = p.at(0).as<sequence_ptr>();
  const std::vector<value> wanted = several ? (*several)->items : std::vector<value>{p.at(0)};
  run.cost.step(wanted.size());
  return make_bool(std::any_of(wanted.begin(), wanted.end(), [&](const value& v) {
    const std::string* text = text_of(v);
    if (!text) fail("{} needs a string or a tuple of strings, not {}", name, type_name(v));
    return at_start ? seen.text.starts_with(*text) : seen.text.ends_with(*text);
  }));
}

value find_from(runtime& run, const value& self, arguments_in given, std::string_view name, bool last) {
  const parameters p(name, std::move(given), {"sub", "start", "end"}, 1);
  const window seen = looked_at(p, own(self));
  const std::string wanted = p.text(0, "");
  const std::size_t at = last ? find_last_text(run.cost, seen.text, wanted) : find_text(seen.text, wanted);
  if (at == std::string::npos || seen.outside) return make_integer(-1);
  return make_integer(seen.start + static_cast<integer>(code_points(seen.text.substr(0, at))));
}

value index_from(runtime& run, const value& self, arguments_in given, std::string_view name, bool last) {
  value found = find_from(run, self, std::move(given), name, last);
  if (*found.as<integer>() < 0) fail("{}: the substring is not there", name);
  return found;
}

value partition_at(runtime& run, const value& self, arguments_in given, std::string_view name, bool last) {
  const parameters p(name, std::move(given), {"sep"}, 1);
  const std::string wanted = p.text(0, "");
  if (wanted.empty()) fail("{}: the separator is empty", name);
  const std::string& text = own(self);
  const std::size_t at = last ? find_last_text(run.cost, text, wanted) : find_text(text, wanted);
  std::vector<value> parts(3, make_text(""));
  if (at == text.npos) {
    parts[last ? 2 : 0] = self;
  } else {
    parts = {make_text(text.substr(0, at)), make_text(wanted), make_text(text.substr(at + wanted.size()))};
  }
  return make_sequence(sequence_kind::tuple, std::move(parts));
}

value without(const value& self, arguments_in given, std::string_view name, bool at_start) {
  const parameters p(name, std::move(given), {"affix"}, 1);
  const std::string affix = p.text(0, "");
  const std::string& text = own(self);
  if (!(at_start ? text.starts_with(affix) : text.ends_with(affix))) return self;
  return make_text(at_start ? text.substr(affix.size()) : text.substr(0, text.size() - affix.size()));
}

value replace(runtime& run, const value& self, arguments_in given) {
  const parameters p("replace", std::move(given), {"old", "new", "count"}, 2);
  return make_text(replace_text(run.cost, own(self), p.text(0, ""), p.text(1, ""), p.number(2, -1)));
}

value join(runtime& run, const value& self, arguments_in given) {
  const parameters p("join", std::move(given), {"iterable"}, 1);
  text_builder out(run.cost);
  bool first = true;
  const sequence_ptr items = iterate(run.cost, p.at(0));
  for (const value& item : items->items) {
    if (!text_of(item)) fail("join needs strings, not {}", type_name(item));
    if (!std::exchange(first, false)) out.append(own(self));
    out.append(*text_of(item));
  }
  return make_text(out.take());
}

value count(runtime&, const value& self, arguments_in given) {
  const parameters p("count", std::move(given), {"sub", "start", "end"}, 1);
  const window seen = looked_at(p, own(self));
  const std::string wanted = p.text(0, "");
  if (seen.outside) return make_integer(0);
  if (wanted.empty()) return make_integer(static_cast<integer>(code_points(seen.text)) + 1);
  integer found = 0;
  for (std::size_t at = 0; (at = find_text(seen.text, wanted, at)) != seen.text.npos; at += wanted.size()) ++found;
  return make_integer(found);
}

value split_to_lines(runtime& run, const value& self, arguments_in given) {
  const parameters p("splitlines", std::move(given), {"keepends"});
  return text_list(run.cost, split_lines(run.cost, own(self), p.flag(0, false)));
}

value pad(runtime& run, const value& self, arguments_in given, std::string_view name, bool left) {
  const parameters p(name, std::move(given), {"width", "fillchar"}, 1);
  const std::string fill = p.text(1, " ");
  if (code_points(fill) != 1) fail("{} fills with one character", name);
  text_builder out(run.cost);
  if (left) out.append(own(self));
  for (auto i = static_cast<integer>(code_points(own(self))); i < p.number(0, 0); ++i) {
    run.cost.step();
    out.append(fill);
  }
  if (!left) out.append(own(self));
  return make_text(out.take());
}

template <class Holds>
value all_points(const value& self, Holds holds) {
  const std::string& text = own(self);
  for (std::size_t at = 0; at < text.size();) {
    const code_point next = decode(text, at);
    if (!holds(next.point)) return make_bool(false);
    at += next.length;
  }
  return make_bool(!text.empty());
}

bool is_digit(char32_t point) {
  return point >= '0' && point <= '9';
}
bool is_letter_or_digit(char32_t point) {
  return is_letter(point) || is_digit(point);
}
bool has_case(char32_t point) {
  return to_upper(point) != point || to_lower(point) != point;
}

value is_cased(const value& self, arguments_in given, std::string_view name, std::string (*mapped)(std::string_view)) {
  const parameters nothing(name, std::move(given), {});
  const bool caseless = *all_points(self, [](char32_t point) { return !has_case(point); }).as<bool>();
  return make_bool(!own(self).empty() && !caseless && mapped(own(self)) == own(self));
}

value mapped(const value& self, arguments_in given, std::string_view name, std::string (*mapping)(std::string_view)) {
  const parameters nothing(name, std::move(given), {});
  return make_text(mapping(own(self)));
}

template <class Holds>
value all_are(const value& self, arguments_in given, std::string_view name, Holds holds) {
  const parameters nothing(name, std::move(given), {});
  return all_points(self, holds);
}

struct entry {
  std::string_view name;
  method function;
};

// One row per method: what it is called, and what to do with the text and the arguments.
#define ROW(name, expression)                                                                                          \
  {                                                                                                                    \
    name,                                                                                                              \
        [](runtime& run, const value& self, arguments&& given) -> value { return static_cast<void>(run), expression; } \
  }
constexpr entry table[] = {
    ROW("strip", strip_from(run, self, std::move(given), "strip", side::both)),
    ROW("lstrip", strip_from(run, self, std::move(given), "lstrip", side::left)),
    ROW("rstrip", strip_from(run, self, std::move(given), "rstrip", side::right)),
    ROW("split", split_from(run, self, std::move(given), "split", false)),
    ROW("rsplit", split_from(run, self, std::move(given), "rsplit", true)),
    ROW("splitlines", split_to_lines(run, self, std::move(given))),
    ROW("startswith", ends(run, self, std::move(given), "startswith", true)),
    ROW("endswith", ends(run, self, std::move(given), "endswith", false)),
    ROW("removeprefix", without(self, std::move(given), "removeprefix", true)),
    ROW("removesuffix", without(self, std::move(given), "removesuffix", false)),
    ROW("find", find_from(run, self, std::move(given), "find", false)),
    ROW("rfind", find_from(run, self, std::move(given), "rfind", true)),
    ROW("index", index_from(run, self, std::move(given), "index", false)),
    ROW("rindex", index_from(run, self, std::move(given), "rindex", true)),
    ROW("partition", partition_at(run, self, std::move(given), "partition", false)),
    ROW("rpartition", partition_at(run, self, std::move(given), "rpartition", true)),
    ROW("replace", replace(run, self, std::move(given))),
    ROW("join", join(run, self, std::move(given))),
    ROW("count", count(run, self, std::move(given))),
    ROW("format", format_braces(run.cost, own(self), given)),
    ROW("ljust", pad(run, self, std::move(given), "ljust", true)),
    ROW("rjust", pad(run, self, std::move(given), "rjust", false)),
    ROW("upper", mapped(self, std::move(given), "upper", upper)),
    ROW("lower", mapped(self, std::move(given), "lower", lower)),
    ROW("casefold", mapped(self, std::move(given), "casefold", lower)),
    ROW("title", mapped(self, std::move(given), "title", title)),
    ROW("capitalize", mapped(self, std::move(given), "capitalize", capitalize)),
    ROW("isspace", all_are(self, std::move(given), "isspace", is_space)),
    ROW("isdigit", all_are(self, std::move(given), "isdigit", is_digit)),
    ROW("isnumeric", all_are(self, std::move(given), "isnumeric", is_digit)),
    ROW("isdecimal", all_are(self, std::move(given), "isdecimal", is_digit)),
    ROW("isalpha", all_are(self, std::move(given), "isalpha", is_letter)),
    ROW("isalnum", all_are(self, std::move(given), "isalnum", is_letter_or_digit)),
    ROW("isupper", is_cased(self, std::move(given), "isupper", upper)),
    ROW("islower", is_cased(self, std::move(given), "islower", lower)),
};
#undef ROW

}  // namespace

method find_text_method(std::string_view name) {
  const auto* found = std::find_if(std::begin(table), std::end(table), [&](const entry& e) { return e.name == name; });
  return found == std::end(table) ? nullptr : found->function;
}

}  // namespace troupe::detail::jinja
