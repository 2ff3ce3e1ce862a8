#include "model/engine/sampling/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

stop_matcher::stop_matcher(std::vector<std::string> stops, bool keeps_stop) : keeps_stop_(keeps_stop) {
  for (auto& stop : stops)
    if (!stop.empty()) patterns_.push_back(pattern_of(std::move(stop)));
}

stop_matcher::pattern stop_matcher::pattern_of(std::string text) {
  pattern pattern{.text = std::move(text), .fallbacks = {0, 0}};
  // The table of a text is what the text itself, read from its second byte on, goes through.
  for (std::size_t i = 1; i < pattern.text.size(); ++i) {
    pattern.advance(pattern.text[i]);
    pattern.fallbacks.push_back(pattern.seen);
  }
  pattern.seen = 0;
  return pattern;
}

void stop_matcher::pattern::advance(char byte) {
  while (seen > 0 && text[seen] != byte) seen = fallbacks[seen];
  if (text[seen] == byte) ++seen;
}

void stop_matcher::advance(char byte, bool stops_count) {
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    pattern& each = patterns_[i];
    each.advance(byte);
    const std::size_t length = each.text.size();
    if (each.seen < length) continue;
    if (!stops_count)
      each.seen = each.fallbacks[length];
    else if (!matched_ || length > matched()->size())
      matched_ = i;
  }
}

std::size_t stop_matcher::possible() const {
  std::size_t most = 0;
  for (const auto& pattern : patterns_) most = std::max(most, pattern.seen);
  return most;
}

std::string stop_matcher::push(std::string_view piece, bool stops_count) {
  if (stopped()) return {};
  if (patterns_.empty()) return std::string(piece);
  std::string text = std::exchange(held_, {});
  for (const char byte : piece) {
    text += byte;
    advance(byte, stops_count);
    if (!stopped()) continue;
    if (!keeps_stop_) text.resize(text.size() - matched()->size());
    return text;
  }
  held_ = text.substr(text.size() - possible());
  text.resize(text.size() - held_.size());
  return text;
}

std::string stop_matcher::finish() {
  for (auto& pattern : patterns_) pattern.seen = 0;
  return std::exchange(held_, {});
}

}  // namespace troupe
