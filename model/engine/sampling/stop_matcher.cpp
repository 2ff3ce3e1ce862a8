#include "model/engine/sampling/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

stop_matcher::stop_matcher(std::vector<std::string> stops, bool keeps_stop) : keeps_stop_(keeps_stop) {
  std::vector<pattern> patterns;
  for (auto& stop : stops)
    if (!stop.empty()) patterns.emplace_back(std::move(stop));
  seen_.assign(patterns.size(), 0);
  patterns_ = std::make_shared<const std::vector<pattern>>(std::move(patterns));
}

/// The table of a text is what the text itself, read from its second byte on, goes through.
stop_matcher::pattern::pattern(std::string stop) : text(std::move(stop)), fallbacks{0, 0} {
  std::size_t seen = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    seen = after(seen, text[i]);
    fallbacks.push_back(seen);
  }
}

std::size_t stop_matcher::pattern::after(std::size_t seen, char byte) const {
  while (seen > 0 && text[seen] != byte) seen = fallbacks[seen];
  return text[seen] == byte ? seen + 1 : seen;
}

void stop_matcher::advance(char byte, bool stops_count) {
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const pattern& each = (*patterns_)[i];
    const std::size_t length = each.text.size();
    seen_[i] = each.after(seen_[i], byte);
    if (seen_[i] < length) continue;
    if (!stops_count)
      seen_[i] = each.fallbacks[length];
    else if (!matched_ || length > matched()->size())
      matched_ = i;
  }
}

std::string stop_matcher::push(std::string_view piece, bool stops_count) {
  if (stopped()) return {};
  if (seen_.empty()) return std::string(piece);
  std::string text = std::exchange(held_, {});
  for (const char byte : piece) {
    text += byte;
    advance(byte, stops_count);
    if (!stopped()) continue;
    if (!keeps_stop_) text.resize(text.size() - matched()->size());
    return text;
  }
  held_ = text.substr(text.size() - *std::max_element(seen_.begin(), seen_.end()));  // may begin a stop string
  text.resize(text.size() - held_.size());
  return text;
}

std::string stop_matcher::finish() {
  std::fill(seen_.begin(), seen_.end(), 0);
  return std::exchange(held_, {});
}

}  // namespace troupe
