#include "actors/http/chats/pythonic_json.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "actors/http/json_text.hpp"
#include "base/ascii.hpp"
#include "model/text/tags.hpp"

namespace troupe {

struct pythonic_reader::notation {
  std::string_view begin, behind_key, end;  ///< behind_key: empty where there are no keys
  std::string_view behind_value;            ///< the letters one of which comes next
  char json_begin, json_end;
};

bool pythonic_reader::read_arguments() {
  return read_parts({"(", "=", ")", ",)", '{', '}'}, 0);
}

bool pythonic_reader::read_value(int depth, std::string_view behind) {
  constexpr int most_depth = 60;
  rest_.remove_prefix(first_not_blank(rest_));
  if (rest_.starts_with('"') || rest_.starts_with('\'')) return read_text(behind);
  if (depth == most_depth) return false;
  if (rest_.starts_with('{')) return read_parts({"{", ":", "}", ",}", '{', '}'}, depth + 1);
  if (rest_.starts_with('[')) return read_parts({"[", "", "]", ",]", '[', ']'}, depth + 1);
  return rest_.starts_with('(') ? read_parts({"(", "", ")", ",)", '[', ']'}, depth + 1) : read_word();
}

bool pythonic_reader::read_parts(const notation& of, int depth) {
  if (!take(rest_, of.begin)) return false;
  json_ += of.json_begin;
  for (bool is_first = true; !take(rest_, of.end); is_first = false) {
    if (!is_first) json_ += ',';
    if (!of.behind_key.empty() && !read_key(of)) return false;
    if (!read_value(depth, of.behind_value)) return false;
    if (!take(rest_, ",") && !rest_.substr(first_not_blank(rest_)).starts_with(of.end)) return false;
  }
  json_ += of.json_end;
  return true;
}

/// Those of arguments are names, others texts. Of a key whose end is missing there is nothing.
bool pythonic_reader::read_key(const notation& of) {
  const std::size_t before = json_.size();
  rest_.remove_prefix(first_not_blank(rest_));
  bool is_whole = false;
  if (of.behind_key == "=") {
    const std::string_view name = rest_.substr(0, rest_.find_first_of("=,:()[]{}\"' \t\r\n"));
    rest_.remove_prefix(name.size());
    json_ += json_text(name);
    is_whole = !name.empty();
  } else if (rest_.starts_with('"') || rest_.starts_with('\'')) {
    is_whole = read_text(of.behind_key);
  }
  is_whole = is_whole && take(rest_, of.behind_key);
  if (is_whole)
    json_ += ':';
  else
    json_.resize(before);
  return is_whole;
}

bool pythonic_reader::read_text(std::string_view behind) {
  const bool is_long = rest_.starts_with(R"(""")") || rest_.starts_with("'''");
  const std::string_view quote = rest_.substr(0, is_long ? 3 : 1);
  rest_.remove_prefix(quote.size());
  json_ += '"';
  while (!rest_.empty() && !ends_text(quote, behind)) {
    if (rest_.front() == '\\') {
      read_escape();
      continue;
    }
    const bool is_plain = static_cast<unsigned char>(rest_.front()) >= ' ' && rest_.front() != '"';
    const std::string letter = is_plain ? std::string() : json_text(rest_.substr(0, 1));
    json_ += is_plain ? rest_.substr(0, 1) : std::string_view(letter).substr(1, letter.size() - 2);
    rest_.remove_prefix(1);
  }
  if (rest_.empty()) return false;
  rest_.remove_prefix(quote.size());
  json_ += '"';
  return true;
}

/// LFM2.5's template does not escape the quotes that a text has: one ends it where a letter of `behind` comes next.
/// Three of them are the model's own.
bool pythonic_reader::ends_text(std::string_view quote, std::string_view behind) const {
  if (!rest_.starts_with(quote)) return false;
  if (quote.size() > 1) return true;
  const std::string_view rest = rest_.substr(1);
  return is_blank(rest) || behind.find(rest[first_not_blank(rest)]) != behind.npos;
}

/// Of one whose end is missing there is nothing. A backslash before any other letter is meant so.
void pythonic_reader::read_escape() {
  const char letter = rest_.size() > 1 ? rest_[1] : '\0';
  const std::string_view same = R"(nrtbfu"\)";
  if (letter == '\'')
    json_ += '\'';
  else if (letter == 'x')
    json_ += R"(\u00)";
  else if (same.find(letter) != same.npos)
    json_.append({'\\', letter});
  else if (letter != '\0')
    json_ += R"(\\)";
  const bool is_known = letter == '\'' || letter == 'x' || same.find(letter) != same.npos;
  rest_.remove_prefix(is_known ? 2 : 1);
}

/// One that may go on is left out unless it is JSON by now.
bool pythonic_reader::read_word() {
  const std::size_t end = rest_.find_first_of(",:)]}");
  std::string_view word = without_blanks_behind(rest_.substr(0, end));
  if (word == "True") word = "true";
  if (word == "False") word = "false";
  if (word == "None") word = "null";
  const bool is_json = nlohmann::json::accept(word), is_whole = end != rest_.npos;
  if (is_json) json_ += word;
  if (is_json || !is_whole) rest_.remove_prefix(std::min(end, rest_.size()));
  return is_json && is_whole;
}

}  // namespace troupe
