#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/printing.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

constexpr int widest = 1000;

// One conversion: "%-8.2f" or "{:<8.2f}" less its brackets.
struct field {
  bool left = false, zero = false, plus = false, space = false;
  int width = 0;
  int precision = -1;
  char type = 's';
};

class spec_reader {
 public:
  explicit spec_reader(std::string_view text) : text_(text) {}

  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  char next() {
    if (done()) fail("format: incomplete format");
    return text_[at_++];
  }
  bool skip(char wanted) {
    if (done() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  std::string_view until(char end) {
    const std::size_t stop = text_.find(end, at_);
    if (stop == text_.npos) fail("format: '{}' is missing", end);
    const std::string_view part = text_.substr(at_, stop - at_);
    at_ = stop + 1;
    return part;
  }
  int number() {
    int count = 0;
    while (peek() >= '0' && peek() <= '9') {
      count = count * 10 + (next() - '0');
      if (count > widest) fail("format: widths end at {}", widest);
    }
    return count;
  }
  void width_and_precision(field& into) {
    into.width = number();
    if (skip('.')) into.precision = number();
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

std::string digits(integer number, char type) {
  using size_type = unsigned __int128;  // the size of the least integer is none
  const size_type size = number < 0 ? -static_cast<size_type>(number) : static_cast<size_type>(number);
  switch (type) {
    case 'x':
      return fmt::format("{:x}", size);
    case 'X':
      return fmt::format("{:X}", size);
    case 'o':
      return fmt::format("{:o}", size);
    default:
      return fmt::format("{}", size);
  }
}

std::string float_digits(double number, const field& how) {
  const std::array<char, 5> pattern{'%', '.', '*', how.type, '\0'};
  const int precision = how.precision < 0 ? 6 : how.precision;
  const double size = std::signbit(number) ? -number : number;
  std::array<char, 2 * widest> buffer;
  const int used = std::snprintf(buffer.data(), buffer.size(), pattern.data(), precision, size);
  return {buffer.data(), std::min(buffer.size() - 1, static_cast<std::size_t>(used))};
}

bool is_integer_type(char type) {
  return std::string_view("diuxXo").find(type) != std::string_view::npos;
}

// Sign and digits of a number, apart because zeros go between them.
std::pair<std::string, std::string> number_parts(const value& v, const field& how) {
  const std::optional<double> number = number_of(v);
  if (!number) fail("format: %{} needs a number, not {}", how.type, type_name(v));
  if (!is_integer_type(how.type)) return {std::signbit(*number) ? "-" : "", float_digits(*number, how)};
  std::optional<integer> whole = integer_of(v);
  if (!whole) {
    if (!(std::abs(*number) < 1e30)) fail("format: the number is too large for %{}", how.type);
    whole = static_cast<integer>(*number);
  }
  return {*whole < 0 ? "-" : "", digits(*whole, how.type)};
}

std::string cut(std::string text, int precision) {
  if (precision < 0) return text;
  const std::vector<std::size_t> starts = code_point_starts(text);
  const auto kept = static_cast<std::size_t>(precision);
  if (kept + 1 < starts.size()) text.resize(starts[kept]);
  return text;
}

std::string plain_text(budget& cost, const value& v, const field& how) {
  text_builder out(cost);
  if (how.type == 'r')
    print_quoted(out, v);
  else
    print(out, v);
  return cut(out.take(), how.precision);
}

void put(text_builder& out, const value& v, const field& how) {
  const bool text = how.type == 's' || how.type == 'r';
  std::string sign, body;
  if (text) {
    body = plain_text(out.cost(), v, how);
  } else {
    std::tie(sign, body) = number_parts(v, how);
    if (sign.empty() && (how.plus || how.space)) sign = how.plus ? "+" : " ";
  }
  const std::size_t used = sign.size() + code_points(body);
  const std::size_t padding = static_cast<std::size_t>(how.width) > used ? how.width - used : 0;
  const bool zeros = how.zero && !how.left && !text;
  if (!zeros && !how.left) out.repeat(' ', padding);
  out.append(sign);
  if (zeros) out.repeat('0', padding);
  out.append(body);
  if (how.left) out.repeat(' ', padding);
}

bool read_flag(spec_reader& reader, field& into) {
  if (reader.skip('-')) return into.left = true;
  if (reader.skip('0')) return into.zero = true;
  if (reader.skip('+')) return into.plus = true;
  return reader.skip(' ') && (into.space = true);
}

// Hands out the arguments of one format call.
class argument_source {
 public:
  argument_source(budget& cost, const arguments& given) : cost_(cost), given_(given) {}

  const value& next() { return numbered(next_++); }
  const value& numbered(std::size_t index) {
    if (index >= given_.positional.size()) fail("format: not enough arguments for the format string");
    return given_.positional[index];
  }
  const value& named(std::string_view name) {
    if (const value* given = find_named(given_.named, name)) return *given;
    const mapping* dict = given_.positional.size() == 1 ? mapping_of(given_.positional[0]) : nullptr;
    const value* entry = dict ? find(cost_, *dict, make_text(std::string(name))) : nullptr;
    if (!entry) fail("format: there is no argument '{}'", name);
    used_names_ = true;
    return *entry;
  }
  bool exhausted() const {
    // Python takes anything with an index for a source of named arguments.
    const bool indexed = given_.positional.size() == 1 && depth_of(given_.positional[0]) > 0;
    return used_names_ || indexed || next_ >= given_.positional.size();
  }

 private:
  budget& cost_;
  const arguments& given_;
  std::size_t next_ = 0;
  bool used_names_ = false;
};

void put_percent(text_builder& out, spec_reader& reader, argument_source& source) {
  if (reader.skip('%')) return out.append('%');
  const value* chosen = reader.skip('(') ? &source.named(reader.until(')')) : nullptr;
  field how;
  while (read_flag(reader, how)) continue;
  reader.width_and_precision(how);
  how.type = reader.next();
  if (std::string_view("srdiuxXofFeEgG").find(how.type) == std::string_view::npos) {
    fail("format: the conversion character 0x{:02x} is unknown", static_cast<unsigned char>(how.type));
  }
  put(out, chosen ? *chosen : source.next(), how);
}

// Whether Python takes such a value so; what it makes of the other combinations is not imitated.
bool can_format(const value& v, const field& how, bool has_sign) {
  const bool is_whole = v.is<bool>() || v.is<integer>();
  if (how.type != 's') return is_integer_type(how.type) ? is_whole && how.precision < 0 : is_whole || v.is<double>();
  return !has_sign && !how.zero && (text_of(v) || (v.is<double>() && how.precision < 0));
}

field read_brace_spec(std::string_view spec, const value& v) {
  if (spec.empty()) return {};
  spec_reader reader(spec);
  field how;
  how.left = reader.skip('<');
  const bool is_aligned = how.left || reader.skip('>');
  if (!is_aligned) how.left = text_of(v) != nullptr;
  how.plus = reader.skip('+');
  how.space = !how.plus && reader.skip(' ');
  const bool has_sign = how.plus || how.space || reader.skip('-');
  how.zero = reader.skip('0');
  reader.width_and_precision(how);
  const bool is_real = v.is<double>();
  const bool has_type = !reader.done();
  how.type = has_type ? reader.next() : text_of(v) || is_real ? 's' : 'd';
  const bool is_known = reader.done() && std::string_view("sdxXofFeEgG").find(how.type) != std::string_view::npos;
  const bool is_ambiguous = (is_aligned && how.zero) || (is_real && has_type && how.type == 's');
  if (!is_known || is_ambiguous || !can_format(v, how, has_sign))
    fail("format: the format spec '{}' is not supported for {}", spec, type_name(v));
  return how;
}

const value& chosen_by(std::string_view name, argument_source& source) {
  if (name.empty()) return source.next();
  if (name.find_first_not_of("0123456789") == name.npos) {
    return source.numbered(static_cast<std::size_t>(spec_reader(name).number()));
  }
  return source.named(name);
}

void put_braces(text_builder& out, std::string_view inside, argument_source& source) {
  const std::size_t colon = inside.find(':');
  const value& chosen = chosen_by(inside.substr(0, colon), source);
  put(out, chosen, colon == inside.npos ? field{} : read_brace_spec(inside.substr(colon + 1), chosen));
}

}  // namespace

value format_percent(budget& cost, const std::string& format, const arguments& given) {
  text_builder out(cost);
  argument_source source(cost, given);
  spec_reader reader(format);
  while (!reader.done()) {
    const char next = reader.next();
    if (next == '%')
      put_percent(out, reader, source);
    else
      out.append(next);
  }
  if (!source.exhausted()) fail("format: more arguments than the format string uses");
  return make_text(out.take());
}

value format_braces(budget& cost, const std::string& format, const arguments& given) {
  text_builder out(cost);
  argument_source source(cost, given);
  spec_reader reader(format);
  while (!reader.done()) {
    const char next = reader.next();
    if (next == '}' && !reader.skip('}')) fail("format: a single '}}' stands alone");
    if (next != '{' || reader.skip('{')) {
      out.append(next);
    } else {
      put_braces(out, reader.until('}'), source);
    }
  }
  return make_text(out.take());
}

}  // namespace troupe::detail::jinja
