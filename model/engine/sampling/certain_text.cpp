#include "model/engine/sampling/certain_text.hpp"

namespace troupe {

std::string certain_text::push(token_id token, bool stops_count) {
  stops_count_ = stops_count;
  return stops_.push(decoder_.push(token), stops_count);
}

std::string certain_text::finish(std::optional<token_id> last) {
  std::string rest = last ? decoder_.push(*last) : std::string();
  rest += decoder_.finish();
  const std::string text = stops_.push(rest, stops_count_);
  return text + stops_.finish();
}

}  // namespace troupe
