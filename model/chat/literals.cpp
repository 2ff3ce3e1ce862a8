#include "model/chat/literals.hpp"

#include <cstdint>

#include "base/utf8.hpp"

namespace troupe::detail::jinja {
namespace {

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
    if (digit_value(kind) < 8) return --at_, put(read_digits(1, 3, 8));
    out_ += '\\';
    out_ += kind;
  }

  std::uint32_t read_digits(int least, int most, int base) {
    std::uint32_t code = 0;
    int count = 0;
    for (; count < most && at_ < literal_.size() && digit_value(literal_[at_]) < base; ++count) {
      code = code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit_value(literal_[at_++]));
    }
    if (count < least) error_ = "an escape in the string lacks digits";
    return code;
  }

  void put(std::uint32_t code) {
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (surrogate || code > 0x10FFFF) error_ = "an escape in the string is no Unicode character";
    if (error_.empty()) append_utf8(out_, code);
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

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'z' ? small - 'a' + 10 : 99;
}

bool append_digit(integer& number, int digit, int base) {
  return !__builtin_mul_overflow(number, integer{base}, &number) &&
         !__builtin_add_overflow(number, integer{digit}, &number);
}

int prefixed_base(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  switch (digits[1] | 0x20) {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 10;
  }
}

}  // namespace troupe::detail::jinja
