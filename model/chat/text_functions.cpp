#include "model/chat/text_functions.hpp"

#include <algorithm>

namespace troupe::detail::jinja {
namespace {

std::size_t space_end(std::string_view text, std::size_t at) {
  return text.size() - strip(text.substr(at), side::left).size();
}

std::size_t word_end(std::string_view text, std::size_t at) {
  while (at < text.size() && !is_space(decode(text, at).value)) at += decode(text, at).length;
  return at;
}

void add(budget& cost, std::vector<std::string_view>& parts, std::string_view part) {
  cost.step();
  cost.take(sizeof(part));
  parts.push_back(part);
}

// Bytes of the line break at `at`, 0 if there is none.
std::size_t line_break(std::string_view text, std::size_t at, const code_point& here) {
  if (here.value == '\r') return at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
  const bool ends = (here.value >= '\n' && here.value <= '\r') || (here.value >= 0x1C && here.value <= 0x1E) ||
                    here.value == 0x85 || here.value == 0x2028 || here.value == 0x2029;
  return ends && here.valid ? here.length : 0;
}

std::vector<std::string_view> words(budget& cost, std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t at = space_end(text, 0); at < text.size(); at = space_end(text, at)) {
    const std::size_t end = word_end(text, at);
    add(cost, found, text.substr(at, end - at));
    at = end;
  }
  return found;
}

}  // namespace

std::vector<std::string_view> split_spaces(budget& cost, std::string_view text, std::size_t limit, bool from_right) {
  std::vector<std::string_view> parts = words(cost, text);
  if (parts.size() <= limit || parts.size() < 2) return parts;
  // What is beyond the limit stays in one piece, the spaces inside it included.
  if (from_right) {
    parts.erase(parts.begin(), parts.end() - static_cast<std::ptrdiff_t>(limit) - 1);
    const std::string_view last = parts.front();
    parts.front() = text.substr(0, static_cast<std::size_t>(last.data() + last.size() - text.data()));
  } else {
    parts[limit] = text.substr(static_cast<std::size_t>(parts[limit].data() - text.data()));
    parts.resize(limit + 1);
  }
  return parts;
}

std::vector<std::string_view> split_text(budget& cost, std::string_view text, std::string_view separator,
                                         std::size_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  if (!from_right) {
    for (std::size_t at; parts.size() < limit && (at = find_text(text, separator)) != text.npos;) {
      add(cost, parts, text.substr(0, at));
      text.remove_prefix(at + separator.size());
    }
    add(cost, parts, text);
    return parts;
  }
  for (std::size_t at; parts.size() < limit && (at = find_last_text(cost, text, separator)) != text.npos;) {
    add(cost, parts, text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  add(cost, parts, text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_lines(budget& cost, std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const code_point here = decode(text, at);
    const std::size_t ends = line_break(text, at, here);
    if (ends > 0) add(cost, lines, text.substr(start, at - start + (keep_ends ? ends : 0)));
    at += std::max(ends, here.length);
    if (ends > 0) start = at;
  }
  if (start < text.size()) add(cost, lines, text.substr(start));
  return lines;
}

value strip_text(budget& cost, std::string_view text, side from, const parameters& p) {
  if (!p.given(0)) return make_text(std::string(strip(text, from)));
  const std::string characters = p.text(0, "");
  cost.step(text.size() / 64 * characters.size());
  return make_text(std::string(strip(text, from, characters)));
}

value text_list(budget& cost, const std::vector<std::string_view>& parts) {
  cost.take(parts.size() * text_value_bytes);
  cost.step(parts.size());
  std::vector<value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.push_back(make_text(std::string(part)));
  return make_sequence(sequence_kind::list, std::move(items));
}

std::size_t find_last_text(budget& cost, std::string_view text, std::string_view wanted) {
  if (wanted.empty()) return text.size();
  cost.step(text.size() / 64);
  for (std::size_t end = text.size(); end >= wanted.size(); --end) {
    const std::size_t start = end - wanted.size();
    if (text[start] != wanted.front()) continue;
    cost.step(1 + wanted.size() / 64);
    if (text.substr(start, wanted.size()) == wanted) return start;
  }
  return text.npos;
}

std::string replace_text(budget& cost, std::string_view text, std::string_view old, std::string_view by,
                         integer count) {
  text_builder out(cost);
  std::size_t at = 0;
  for (; count != 0; --count) {
    cost.step();
    const std::size_t found = find_text(text, old, at);
    if (found == text.npos) break;
    out.append(text.substr(at, found - at));
    out.append(by);
    at = found + old.size();
    if (!old.empty()) continue;
    // Between all characters, and at both ends.
    if (at >= text.size()) return out.take();
    const std::size_t length = decode(text, at).length;
    out.append(text.substr(at, length));
    at += length;
  }
  out.append(text.substr(at));
  return out.take();
}

}  // namespace troupe::detail::jinja
