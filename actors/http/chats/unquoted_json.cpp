#include "actors/http/chats/unquoted_json.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "actors/http/chats/end_search.hpp"
#include "actors/http/json_text.hpp"
#include "base/ascii.hpp"
#include "model/text/tags.hpp"

namespace troupe {

bool unquoted_reader::is_at_end() const {
  return is_blank(rest_);
}

bool unquoted_reader::read_value(int depth) {
  constexpr int most_depth = 60;
  rest_.remove_prefix(first_not_blank(rest_));
  if (rest_.starts_with(text_mark)) return read_marked_text();
  if (rest_.starts_with('"')) return read_json_text();
  if (depth == most_depth) return false;
  if (rest_.starts_with('{')) return read_parts('{', '}', depth + 1);
  return rest_.starts_with('[') ? read_parts('[', ']', depth + 1) : read_word();
}

bool unquoted_reader::read_parts(char begin, char end, int depth) {
  const auto take_one = [&](char wanted) {
    if (!take(rest_, {&wanted, 1})) return false;
    json_ += wanted;
    return true;
  };
  const auto is_left_empty = [&] {
    const std::size_t next = first_not_blank(rest_);
    return begin == '{' && next < rest_.size() && (rest_[next] == ',' || rest_[next] == end);
  };
  take_one(begin);
  if (take_one(end)) return true;
  do {
    if (begin == '{' && !read_key()) return false;
    if (is_left_empty())
      json_ += R"("")";  // a text without marks, of no letters
    else if (!read_value(depth))
      return false;
  } while (take_one(','));
  return take_one(end);
}

/// Of a key whose end is missing there is nothing.
bool unquoted_reader::read_key() {
  const std::size_t before = json_.size();
  const bool is_whole = read_name() && take(rest_, ":");
  if (is_whole)
    json_ += ':';
  else
    json_.resize(before);
  return is_whole;
}

bool unquoted_reader::read_name() {
  rest_.remove_prefix(first_not_blank(rest_));
  if (rest_.starts_with(text_mark)) return read_marked_text();
  if (rest_.starts_with('"')) return read_json_text();
  const std::string_view name = rest_.substr(0, rest_.find_first_of(":,{}[]\"\n"));
  rest_.remove_prefix(name.size());
  json_ += json_text(name.substr(0, name.find_last_not_of(" \t\r") + 1));
  return !name.empty();
}

bool unquoted_reader::read_marked_text() {
  rest_.remove_prefix(text_mark.size());
  const auto whole = take_until(rest_, text_mark);
  json_ += json_text(whole ? *whole : std::exchange(rest_, {}));
  if (!whole) json_.pop_back();  // the quote that ends it
  return whole.has_value();
}

bool unquoted_reader::read_json_text() {
  const std::size_t end = end_of_value(rest_);
  json_ += rest_.substr(0, end);
  rest_.remove_prefix(std::min(end, rest_.size()));
  return end != rest_.npos;
}

/// A number, true, false or null as in JSON, or else a text without marks. One that may go on is left out unless it is
/// JSON by now.
bool unquoted_reader::read_word() {
  const std::size_t end = rest_.find_first_of(",}]");
  std::string_view word = rest_.substr(0, end);
  rest_.remove_prefix(word.size());
  word = without_blanks_behind(word);
  if (word.empty()) return false;
  const bool is_whole = end != rest_.npos;
  if (nlohmann::json::accept(word))
    json_ += word;
  else if (is_whole)
    json_ += word == "None" ? "null" : json_text(word);  // as the template writes null in earlier calls
  return is_whole;
}

}  // namespace troupe
