#include "model/tokenizer/added_tokens.hpp"

#include <cstdint>

#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/regex.hpp"

namespace troupe::detail {
namespace {

bool is_word_at(std::string_view text, std::size_t at) {
  const auto point = next_code_point(text, at);
  return point.valid && is_word_character(point.value);
}

std::size_t white_space_at_start(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto point = next_code_point(text, at);
    if (!point.valid || !is_white_space(point.value)) break;
    at += point.length;
  }
  return at;
}

std::size_t without_white_space_at_end(std::string_view text) {
  while (!text.empty()) {
    const auto at = last_code_point(text);
    const auto point = next_code_point(text, at);
    if (!point.valid || !is_white_space(point.value)) break;
    text = text.substr(0, at);
  }
  return text.size();
}

/// No word touches [begin, end).
bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const auto before = text.substr(0, begin);
  return (before.empty() || !is_word_at(before, last_code_point(before))) &&
         (end == text.size() || !is_word_at(text, end));
}

}  // namespace

std::uint32_t added_token_splitter::child(std::uint32_t parent, char byte) const {
  for (const auto& [letter, index] : nodes_[parent].children)
    if (letter == byte) return index;
  return 0;
}

void added_token_splitter::add(added_token token, std::string content) {
  std::uint32_t at = 0;
  for (const char byte : content) {
    auto next = child(at, byte);
    if (next == 0) {
      next = static_cast<std::uint32_t>(nodes_.size());
      nodes_[at].children.emplace_back(byte, next);
      nodes_.emplace_back();
    }
    at = next;
  }
  if (nodes_[at].token >= 0) return;
  starts_[static_cast<std::uint8_t>(content.front())] = true;
  nodes_[at].token = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back(std::move(token));
}

added_token_splitter::found added_token_splitter::longest_at(std::string_view text, std::size_t at) const {
  found best;
  std::uint32_t place = 0;
  for (auto i = at; i < text.size(); ++i) {
    place = child(place, text[i]);
    if (place == 0) break;
    if (nodes_[place].token >= 0) best = {nodes_[place].token, i + 1 - at};
  }
  return best;
}

void added_token_splitter::split(std::string_view text, bool parse_special, const text_sink& on_text,
                                 const token_sink& on_token) const {
  std::size_t done = 0;
  std::size_t white_until = 0;  // the end of the white space that was looked for last
  for (std::size_t at = 0; at < text.size();) {
    const auto hit = starts_[static_cast<std::uint8_t>(text[at])] ? longest_at(text, at) : found{};
    if (hit.token < 0) {
      ++at;
      continue;
    }
    const auto& token = tokens_[to_size(hit.token)];
    auto begin = at;
    const auto end = at + hit.length;
    at = end;
    if (token.special && !parse_special) continue;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    // A token may lie inside the white space that the last one took along: it counts, and what follows it is text
    // again.
    if (token.lstrip && done < begin) begin = done + without_white_space_at_end(text.substr(done, begin - done));
    if (done < begin) on_text(text.substr(done, begin - done));
    on_token(token.id);
    done = end;
    if (!token.rstrip) continue;
    if (white_until < end) white_until = end + white_space_at_start(text.substr(end));
    done = white_until;
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace troupe::detail
