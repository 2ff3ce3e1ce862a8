#include "base/utf8.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {
namespace {

constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Moves whole characters from `held` to the result; broken bytes become U+FFFD. Stays: what may yet become a
/// character.
std::string take_characters(std::string& held) {
  std::string out;
  std::size_t at = 0;
  while (at < held.size()) {
    const auto point = next_code_point(held, at);
    if (point.cut_off) break;
    if (point.valid)
      out += std::string_view(held).substr(at, point.length);
    else
      out += replacement_character;
    at += point.length;
  }
  held.erase(0, at);
  return out;
}

}  // namespace

stream_decoder::stream_decoder(const tokenizer& tokens, bool skip_special, bool at_start)
    : tokens_(tokens), skip_special_(skip_special), at_start_(at_start) {}

std::string stream_decoder::push(token_id token) {
  if (skip_special_ && tokens_.is_special(token)) return {};
  auto bytes = tokens_.bytes_of(token);
  if (at_start_ && !bytes.empty()) {
    if (tokens_.strips_leading_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
    at_start_ = false;
  }
  held_ += bytes;
  return take_characters(held_);
}

std::string stream_decoder::finish() {
  const bool cut_off = !held_.empty();
  held_.clear();
  return std::string(cut_off ? replacement_character : std::string_view());
}

}  // namespace troupe
