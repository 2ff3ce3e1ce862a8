#include "model/chat/lexer.hpp"

#include <array>

#include "model/chat/literals.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

// \r\n and \r become \n, and one line break at the end goes.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

class lexer {
 public:
  lexer(std::string_view source, const std::string& where) : source_(normalized(source)), where_(where) {}

  std::vector<token> run() {
    while (at_ < source_.size()) read_piece();
    add(token_kind::end, "", place(source_.size()));
    return std::move(tokens_);
  }

 private:
  // Text up to the next opening bracket, then what the brackets hold.
  void read_piece() {
    const std::size_t open = next_opening();
    if (open == source_.size()) {
      flush(std::string_view(source_).substr(at_));
      at_ = open;
      return;
    }
    const char kind = source_[open + 1];
    const std::size_t raw = kind == '%' ? after_tag(open, "raw") : 0;  // where a raw block's content begins
    flush(before_bracket(open, kind != '{'));
    const position here = place(open);
    at_ = open + 2;
    if (peek() == '-' || peek() == '+') ++at_;
    if (kind == '#') return skip_comment(here);
    if (raw > 0) return read_raw(raw, here);
    add(kind == '{' ? token_kind::print_begin : token_kind::tag_begin, kind == '{' ? "{{" : "{%", here);
    read_code(kind == '{', here);
  }

  std::size_t next_opening() const {
    for (std::size_t open = source_.find('{', at_); open != source_.npos; open = source_.find('{', open + 1)) {
      const char next = open + 1 < source_.size() ? source_[open + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') return open;
    }
    return source_.size();
  }

  // The pending text, stripped as the bracket at `open` asks for.
  std::string_view before_bracket(std::size_t open, bool may_strip_line) const {
    const std::string_view text = std::string_view(source_).substr(at_, open - at_);
    const char mark = open + 2 < source_.size() ? source_[open + 2] : '\0';
    if (mark == '-') return strip(text, side::right);
    if (mark == '+' || !may_strip_line) return text;
    const std::size_t line_break = text.rfind('\n');
    if (line_break == text.npos && !line_starts_) return text;
    const std::size_t line = line_break == text.npos ? 0 : line_break + 1;
    return strip(text.substr(line), side::left).empty() ? text.substr(0, line) : text;
  }

  void flush(std::string_view text) {
    if (!text.empty()) add(token_kind::text, std::string(text), place(at_));
  }

  // Past a closing bracket at at_, whose last two characters are `closing`; false if there is none.
  bool close(std::string_view closing, bool trims_line) {
    const std::string_view rest = std::string_view(source_).substr(at_);
    if (rest.starts_with('-') && rest.substr(1).starts_with(closing)) {
      const std::string_view after = strip(rest.substr(1 + closing.size()), side::left);
      return finish(source_.size() - after.size());
    }
    if (trims_line && rest.starts_with('+') && rest.substr(1).starts_with(closing))
      return finish(at_ + 1 + closing.size());
    if (!rest.starts_with(closing)) return false;
    const std::size_t end = at_ + closing.size();
    return finish(end + (trims_line && end < source_.size() && source_[end] == '\n' ? 1 : 0));
  }

  bool finish(std::size_t end) {
    at_ = end;
    line_starts_ = source_[end - 1] == '\n';
    return true;
  }

  void skip_comment(position here) {
    while (at_ < source_.size()) {
      if (close("#}", true)) return;
      ++at_;
    }
    refuse_at(where_, here, "the comment is never closed with #}");
  }

  // The position behind the tag at `open` if it holds just `name`, else 0.
  std::size_t after_tag(std::size_t open, std::string_view name) const {
    std::string_view rest = std::string_view(source_).substr(open + 2);
    if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
    rest = strip(rest, side::left);
    if (!rest.starts_with(name)) return 0;
    rest = strip(rest.substr(name.size()), side::left);
    if (rest.starts_with("-%}") || (name == "endraw" && rest.starts_with("+%}")))
      return source_.size() - rest.size() + 3;
    return rest.starts_with("%}") ? source_.size() - rest.size() + 2 : 0;
  }

  void read_raw(std::size_t content, position here) {
    at_ = content;
    if (source_[content - 3] == '-') skip_spaces();
    line_starts_ = source_[at_ - 1] == '\n';
    for (std::size_t open = source_.find("{%", at_); open != source_.npos; open = source_.find("{%", open + 1)) {
      const std::size_t after = after_tag(open, "endraw");
      if (after == 0) continue;
      flush(before_bracket(open, true));
      at_ = after - 2;
      if (source_[at_ - 1] == '-' || source_[at_ - 1] == '+') --at_;
      return void(close("%}", true));
    }
    refuse_at(where_, here, "the raw block is never closed with endraw");
  }

  void read_code(bool printing, position here) {
    std::string open_brackets;
    while (true) {
      skip_spaces();
      if (at_ >= source_.size()) refuse_at(where_, here, printing ? "{{ is never closed" : "{% is never closed");
      const position closing = place(at_);
      if (open_brackets.empty() && close(printing ? "}}" : "%}", !printing)) {
        return add(printing ? token_kind::print_end : token_kind::tag_end, printing ? "}}" : "%}", closing);
      }
      read_token(open_brackets);
    }
  }

  void read_token(std::string& open_brackets) {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return read_string(c);
    if (is_digit(c)) return read_number();
    if (starts_name(c)) return read_name();
    read_symbol(open_brackets);
  }

  void read_string(char quote) {
    const position here = place(at_);
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) refuse_at(where_, here, "the string is never closed");
    std::string error;
    std::string text = unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1), error);
    if (!error.empty()) refuse_at(where_, here, error);
    at_ = end + 1;
    add(token_kind::string, std::move(text), here);
  }

  void read_name() {
    const position here = place(at_);
    const std::size_t end = name_end(at_);
    add(token_kind::name, source_.substr(at_, end - at_), here);
    at_ = end;
  }

  // 12, 1_000, 0x1f, 1.5, 1e-3: digits only up to where the next token begins ("1.foo" is 1 and .foo).
  void read_number() {
    const position here = place(at_);
    std::size_t end = digits_end(at_);
    bool real = false;
    const bool prefixed = source_[at_] == '0' && end == at_ + 1 &&
                          std::string_view("xXoObB").find(char_at(end)) != std::string_view::npos;
    if (prefixed) {
      end = name_end(end);
    } else {
      const std::size_t whole = end;
      if (char_at(end) == '.' && is_digit(char_at(end + 1))) end = digits_end(end + 1);
      end = exponent_end(end);
      real = end != whole;
    }
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    at_ = end;
    add(real ? token_kind::real : token_kind::integer, std::move(digits), here);
  }

  std::size_t name_end(std::size_t at) const {
    while (starts_name(char_at(at)) || is_digit(char_at(at))) ++at;
    return at;
  }

  std::size_t digits_end(std::size_t at) const {
    while (is_digit(char_at(at)) || (char_at(at) == '_' && is_digit(char_at(at + 1)))) ++at;
    return at;
  }

  std::size_t exponent_end(std::size_t at) const {
    if ((char_at(at) | 0x20) != 'e') return at;
    const std::size_t first = at + (char_at(at + 1) == '+' || char_at(at + 1) == '-' ? 2 : 1);
    return is_digit(char_at(first)) ? digits_end(first) : at;
  }

  void read_symbol(std::string& open_brackets) {
    static constexpr std::array<std::string_view, 28> symbols{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*",
                                                              "%",  "~",  "[",  "]",  "(",  ")",  "{", "}", ">", "<",
                                                              "=",  ".",  ":",  "|",  ",",  ";",  "&", "!"};
    const position here = place(at_);
    for (const std::string_view symbol : symbols) {
      if (source_.compare(at_, symbol.size(), symbol) != 0) continue;
      balance(symbol, open_brackets, here);
      at_ += symbol.size();
      return add(token_kind::symbol, std::string(symbol), here);
    }
    refuse_at(where_, here, fmt::format("unexpected character '{}'", source_.substr(at_, decode(source_, at_).length)));
  }

  void balance(std::string_view symbol, std::string& open_brackets, position here) {
    if (symbol == "(") open_brackets += ')';
    if (symbol == "[") open_brackets += ']';
    if (symbol == "{") open_brackets += '}';
    if (symbol != ")" && symbol != "]" && symbol != "}") return;
    if (open_brackets.empty() || open_brackets.back() != symbol[0]) {
      refuse_at(where_, here, fmt::format("unexpected '{}'", symbol));
    }
    open_brackets.pop_back();
  }

  void skip_spaces() { at_ = source_.size() - strip(std::string_view(source_).substr(at_), side::left).size(); }

  char char_at(std::size_t at) const { return at < source_.size() ? source_[at] : '\0'; }
  char peek() const { return char_at(at_); }

  // Asked for ever later places only, so that counting lines stays linear.
  position place(std::size_t at) {
    for (; counted_ < at; ++counted_) {
      const auto byte = static_cast<unsigned char>(source_[counted_]);
      if (byte == '\n') {
        ++here_.line;
        here_.column = 1;
      } else if ((byte & 0xC0) != 0x80) {
        ++here_.column;
      }
    }
    return here_;
  }

  void add(token_kind kind, std::string text, position at) { tokens_.push_back({kind, std::move(text), at}); }

  std::string source_;
  const std::string& where_;
  std::size_t at_ = 0;
  bool line_starts_ = true;  // what was read last ended a line
  std::size_t counted_ = 0;
  position here_;
  std::vector<token> tokens_;
};

}  // namespace

void refuse_at(const std::string& where, position at, std::string_view why) {
  refuse("{}: line {}, column {}: {}", where, at.line, at.column, why);
}

std::vector<token> tokenize(std::string_view source, const std::string& where) {
  return lexer(source, where).run();
}

}  // namespace troupe::detail::jinja
