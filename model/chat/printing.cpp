#include "model/chat/printing.hpp"

#include <algorithm>
#include <cmath>

#include "base/json_escape.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

std::string quoted_point(const code_point& next, std::string_view raw, char quote) {
  constexpr std::u32string_view escaped_as_in_json = U"\n\r\t\\";
  if (escaped_as_in_json.find(next.value) != escaped_as_in_json.npos) return json_escape(next.value);
  if (next.value == static_cast<char32_t>(quote)) return {'\\', quote};
  if (!next.valid || is_printable(next.value)) return std::string(raw);
  const auto code = static_cast<std::uint32_t>(next.value);
  if (code < 0x100) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? json_escape(next.value) : fmt::format("\\U{:08x}", code);
}

std::string integer_text(integer number) {
  return fmt::format("{}", number);
}

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

void print_quoted_text(text_builder& out, std::string_view text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  out.append(quote);
  for_each_point(text,
                 [&](const code_point& next, std::string_view bytes) { out.append(quoted_point(next, bytes, quote)); });
  out.append(quote);
}

void print_items(text_builder& out, const std::vector<value>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ");
    print_quoted(out, items[i]);
  }
}

void print_sequence(text_builder& out, const sequence& list) {
  if (list.kind == sequence_kind::generator) return out.append("<generator object>");
  const bool tuple = list.kind == sequence_kind::tuple;
  const bool view = list.kind == sequence_kind::view;
  out.append(tuple ? "(" : view ? "dict_view([" : "[");
  print_items(out, list.items);
  if (tuple && list.items.size() == 1) out.append(',');
  out.append(tuple ? ")" : view ? "])" : "]");
}

void print_mapping(text_builder& out, const mapping& dict) {
  out.append('{');
  for (std::size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0) out.append(", ");
    print_quoted(out, dict.entries[i].first);
    out.append(": ");
    print_quoted(out, dict.entries[i].second);
  }
  out.append('}');
}

std::string json_character(const code_point& next, std::string_view raw, bool ascii_only) {
  if (needs_json_escape(next.value)) return json_escape(next.value);
  if (!ascii_only || next.value < 0x7F) return std::string(raw);
  if (next.value < 0x10000) return json_escape(next.value);
  const char32_t offset = next.value - 0x10000;
  return json_escape(0xD800 + (offset >> 10)) + json_escape(0xDC00 + (offset & 0x3FF));
}

void print_json_text(text_builder& out, std::string_view text, bool ascii_only) {
  out.append('"');
  for_each_point(text, [&](const code_point& next, std::string_view bytes) {
    out.append(json_character(next, bytes, ascii_only));
  });
  out.append('"');
}

class json_printer {
 public:
  json_printer(text_builder& out, const json_style& style) : out_(out), style_(style) {}

  void print_value(const value& v) {
    out_.cost().step();
    if (const std::string* text = text_of(v)) return print_json_text(out_, *text, style_.ascii_only);
    if (const sequence* list = sequence_of(v)) {
      if (!is_indexed(*list)) fail("tojson: a {} has no JSON form; make it a list first", type_name(v));
      return print_list(*list);
    }
    if (const mapping* dict = mapping_of(v)) return print_dict(*dict);
    if (!print_scalar(v)) fail("tojson: a value of type {} has no JSON form", type_name(v));
  }

 private:
  bool print_scalar(const value& v) {
    if (v.is<none>()) return out_.append("null"), true;
    if (const bool* truth = v.as<bool>()) return out_.append(*truth ? "true" : "false"), true;
    if (const integer* number = v.as<integer>()) return out_.append(integer_text(*number)), true;
    const double* number = v.as<double>();
    if (!number) return false;
    if (std::isnan(*number)) return out_.append("NaN"), true;
    if (std::isinf(*number)) return out_.append(*number > 0 ? "Infinity" : "-Infinity"), true;
    return out_.append(float_text(*number)), true;
  }

  void print_list(const sequence& list) {
    if (list.items.empty()) return out_.append("[]");
    out_.append('[');
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      separate(i);
      print_value(list.items[i]);
    }
    --level_;
    new_line();
    out_.append(']');
  }

  void print_dict(const mapping& dict) {
    if (dict.entries.empty()) return out_.append("{}");
    out_.append('{');
    ++level_;
    std::size_t i = 0;
    for (const std::pair<value, value>* entry : in_order(dict)) {
      separate(i++);
      print_key(entry->first);
      out_.append(style_.key_separator);
      print_value(entry->second);
    }
    --level_;
    new_line();
    out_.append('}');
  }

  std::vector<const std::pair<value, value>*> in_order(const mapping& dict) {
    std::vector<const std::pair<value, value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (!style_.sorted_keys) return entries;
    std::stable_sort(entries.begin(), entries.end(),
                     [this](auto* a, auto* b) { return order(out_.cost(), a->first, b->first) < 0; });
    return entries;
  }

  void print_key(const value& key) {
    if (const std::string* text = text_of(key)) return print_json_text(out_, *text, style_.ascii_only);
    out_.append('"');
    if (!print_scalar(key)) fail("tojson: a key of type {} has no JSON form", type_name(key));
    out_.append('"');
  }

  void separate(std::size_t index) {
    if (index > 0) out_.append(style_.item_separator);
    new_line();
  }

  void new_line() {
    if (!style_.indent) return;
    out_.append('\n');
    for (std::size_t i = 0; i < level_; ++i) out_.append(*style_.indent);
  }

  text_builder& out_;
  const json_style& style_;
  std::size_t level_ = 0;
};

}  // namespace

void print(text_builder& out, const value& v) {
  if (v.is<undefined>()) return;
  const std::string* text = text_of(v);
  if (text)
    out.append(*text);
  else
    print_quoted(out, v);
}

std::string printed(budget& cost, const value& v) {
  text_builder out(cost);
  print(out, v);
  return out.take();
}

void print_quoted(text_builder& out, const value& v) {
  out.cost().step();
  if (const std::string* text = text_of(v)) return print_quoted_text(out, *text);
  if (const integer* number = v.as<integer>()) return out.append(integer_text(*number));
  if (const double* number = v.as<double>()) return out.append(float_text(*number));
  if (const bool* truth = v.as<bool>()) return out.append(*truth ? "True" : "False");
  if (const sequence* list = sequence_of(v)) return print_sequence(out, *list);
  if (const mapping* dict = mapping_of(v)) return print_mapping(out, *dict);
  if (const callable_ptr* function = v.as<callable_ptr>()) return out.append("<function " + (*function)->name + ">");
  if (v.is<none>()) return out.append("None");
  // Prints as nothing on its own, but shows inside a list.
  if (v.is<undefined>()) return out.append("Undefined");
  fail("a {} cannot be printed", type_name(v));
}

void print_json(text_builder& out, const value& v, const json_style& style) {
  json_printer(out, style).print_value(v);
}

}  // namespace troupe::detail::jinja
