#include "actors/http/chats/end_search.hpp"

namespace troupe {

std::size_t end_search::of_value(std::string_view value) {
  for (; at_ < value.size(); ++at_) {
    const char c = value[at_];
    if (c == '"') quoted_ = !quoted_;
    if (quoted_ && c == '\\') ++at_;
    if (!quoted_) depth_ += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (!quoted_ && depth_ <= 0) return at_ + 1;
  }
  return value.npos;
}

std::size_t end_search::outside_texts(std::string_view json, std::string_view mark) {
  for (; at_ + mark.size() <= json.size(); ++at_) {
    if (json[at_] == '"') quoted_ = !quoted_;
    if (quoted_ && json[at_] == '\\') ++at_;
    if (!quoted_ && json.substr(at_).starts_with(mark)) return at_;
  }
  return json.npos;
}

std::size_t end_search::outside_quotes(std::string_view text, std::string_view quote, std::string_view mark) {
  for (; at_ + mark.size() <= text.size(); ++at_) {
    const std::string_view rest = text.substr(at_);
    if (!quoted_ && rest.starts_with(mark)) return at_;
    if (!rest.starts_with(quote)) continue;
    quoted_ = !quoted_;
    at_ += quote.size() - 1;
  }
  return text.npos;
}

std::size_t end_search::of_text(std::string_view text, std::string_view mark) {
  const std::size_t found = text.find(mark, at_);
  if (found == text.npos && text.size() >= mark.size()) at_ = text.size() - mark.size() + 1;
  return found;
}

}  // namespace troupe
