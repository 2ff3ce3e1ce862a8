#include "model/chat/string_literal.hpp"

#include <cstdint>

#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

int digit_of(char c, int base) {
  int digit = -1;
  if (c >= '0' && c <= '9') digit = c - '0';
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') digit = (c | 0x20) - 'a' + 10;
  return digit < base ? digit : -1;
}

class unescaper {
 public:
  unescaper(std::string_view literal, std::string& error) : literal_(literal), error_(error) {}

  std::string run() {
    while (at_ < literal_.size() && error_.empty()) {
      const char c = literal_[at_++];
      if (c != '\\' || at_ == literal_.size()) {
        out_ += c;
      } else {
        read_escape(literal_[at_++]);
      }
    }
    return std::move(out_);
  }

 private:
  void read_escape(char kind) {
    constexpr std::string_view names = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
    if (const std::size_t known = names.find(kind); known != names.npos) return void(out_ += meanings[known]);
    switch (kind) {
      case '\n':
        return;
      case 'x':
        return put(read_digits(2, 2, 16));
      case 'u':
        return put(read_digits(4, 4, 16));
      case 'U':
        return put(read_digits(8, 8, 16));
      case 'N':
        error_ = "characters by name (\\N{...}) are not supported; write \\u and the number";
        return;
      default:
        break;
    }
    if (digit_of(kind, 8) >= 0) return --at_, put(read_digits(1, 3, 8));
    out_ += '\\';
    out_ += kind;
  }

  std::uint32_t read_digits(int least, int most, int base) {
    std::uint32_t code = 0;
    int count = 0;
    for (; count < most && at_ < literal_.size() && digit_of(literal_[at_], base) >= 0; ++count) {
      code = code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit_of(literal_[at_++], base));
    }
    if (count < least) error_ = "an escape in the string lacks digits";
    return code;
  }

  void put(std::uint32_t code) {
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (surrogate || code > 0x10FFFF) error_ = "an escape in the string is no Unicode character";
    if (error_.empty()) encode(code, out_);
  }

  std::string_view literal_;
  std::string& error_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string unescape(std::string_view literal, std::string& error) {
  return unescaper(literal, error).run();
}

}  // namespace troupe::detail::jinja
