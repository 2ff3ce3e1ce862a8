#include <cmath>
#include <limits>

#include "model/chat/operators.hpp"

namespace troupe::detail::jinja {
namespace {

constexpr std::string_view symbol(arithmetic op) {
  constexpr std::string_view symbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  return symbols[static_cast<std::size_t>(op)];
}

[[noreturn]] void too_large() {
  fail("the result is larger than 127 bits");
}

struct division {
  integer quotient, remainder;
};

// Towards minus infinity, as Python divides.
division divide_floor(integer a, integer b) {
  if (b == 0) fail("division by zero");
  if (b == -1) {
    integer negated = 0;
    if (__builtin_sub_overflow(integer{0}, a, &negated)) too_large();
    return {negated, 0};
  }
  division result{a / b, a % b};
  if (result.remainder != 0 && (result.remainder < 0) != (b < 0)) {
    result.quotient -= 1;
    result.remainder += b;
  }
  return result;
}

integer raise(integer base, integer exponent) {
  integer result = 1;
  while (exponent > 0) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(result, base, &result)) too_large();
    exponent /= 2;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return result;
}

value compute_floats(arithmetic op, double a, double b) {
  if (b == 0 && (op == arithmetic::divide || op == arithmetic::floor_divide || op == arithmetic::modulo)) {
    fail("division by zero");
  }
  switch (op) {
    case arithmetic::add:
      return {a + b};
    case arithmetic::subtract:
      return {a - b};
    case arithmetic::multiply:
      return {a * b};
    case arithmetic::divide:
      return {a / b};
    case arithmetic::power:
      if (a < 0 && b != std::floor(b)) fail("a power of a negative number with a fraction is not real");
      return {std::pow(a, b)};
    default:
      break;
  }
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (remainder == 0) remainder = std::copysign(0.0, b);
  return {op == arithmetic::modulo ? remainder : std::round((a - remainder) / b)};
}

value compute_integers(arithmetic op, integer a, integer b) {
  integer result = 0;
  switch (op) {
    case arithmetic::add:
      if (__builtin_add_overflow(a, b, &result)) too_large();
      return {result};
    case arithmetic::subtract:
      if (__builtin_sub_overflow(a, b, &result)) too_large();
      return {result};
    case arithmetic::multiply:
      if (__builtin_mul_overflow(a, b, &result)) too_large();
      return {result};
    case arithmetic::floor_divide:
      return {divide_floor(a, b).quotient};
    case arithmetic::modulo:
      return {divide_floor(a, b).remainder};
    case arithmetic::power:
      if (b >= 0) return {raise(a, b)};
      if (a == 0) fail("zero cannot be raised to a negative power");
      break;
    default:
      break;
  }
  return compute_floats(op, static_cast<double>(a), static_cast<double>(b));
}

value join_sequences(budget& cost, const sequence& a, const sequence& b) {
  cost.step(a.items.size() + b.items.size());
  std::vector<value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return make_sequence(a.kind, std::move(items));
}

// `count` copies of what has `size` elements; pays for them.
std::size_t repetitions(budget& cost, std::size_t size, integer count, std::size_t bytes_each) {
  if (size == 0 || count <= 0) return 0;
  if (count > std::numeric_limits<std::int32_t>::max()) fail("repeating something {} times", count);
  const auto times = static_cast<std::size_t>(count);
  cost.take(size * times * bytes_each);
  cost.step(size / 64 * times + times);
  return times;
}

std::optional<value> repeat(budget& cost, const value& repeatable, const value& times) {
  const std::optional<integer> count = integer_of(times);
  if (!count) return std::nullopt;
  if (const std::string* text = text_of(repeatable)) {
    std::string repeated;
    for (std::size_t i = repetitions(cost, text->size(), *count, 1); i > 0; --i) repeated += *text;
    return make_text(std::move(repeated));
  }
  const sequence* list = sequence_of(repeatable);
  if (!list || !is_indexed(*list)) return std::nullopt;
  std::vector<value> items;
  for (std::size_t i = repetitions(cost, list->items.size(), *count, sizeof(value)); i > 0; --i) {
    items.insert(items.end(), list->items.begin(), list->items.end());
  }
  return make_sequence(list->kind, std::move(items));
}

std::optional<value> add_containers(budget& cost, const value& a, const value& b) {
  const std::string* text = text_of(a);
  const std::string* other = text_of(b);
  if (text && other) {
    cost.take(text->size() + other->size());
    return make_text(*text + *other);
  }
  const sequence* list = sequence_of(a);
  const sequence* second = sequence_of(b);
  if (list && second && list->kind == second->kind && is_indexed(*list)) return join_sequences(cost, *list, *second);
  return std::nullopt;
}

arguments percent_arguments(const value& given) {
  if (is_kind(given, sequence_kind::tuple)) return {sequence_of(given)->items, {}};
  return {{given}, {}};
}

std::optional<value> compute_containers(budget& cost, arithmetic op, const value& a, const value& b) {
  if (op == arithmetic::add) return add_containers(cost, a, b);
  if (op == arithmetic::modulo && text_of(a)) return format_percent(cost, *text_of(a), percent_arguments(b));
  if (op != arithmetic::multiply) return std::nullopt;
  std::optional<value> product = repeat(cost, a, b);
  return product ? product : repeat(cost, b, a);
}

}  // namespace

value compute(budget& cost, arithmetic op, const value& a, const value& b) {
  require_defined(a);
  require_defined(b);
  if (const auto m = integer_of(a), n = integer_of(b); m && n) return compute_integers(op, *m, *n);
  if (const auto x = number_of(a), y = number_of(b); x && y) return compute_floats(op, *x, *y);
  if (std::optional<value> result = compute_containers(cost, op, a, b)) return *std::move(result);
  if (op == arithmetic::add && (text_of(a) || text_of(b))) {
    fail("'+' joins a string with strings only ({} + {}); '~' joins anything", type_name(a), type_name(b));
  }
  fail("{} {} {} has no meaning", type_name(a), symbol(op), type_name(b));
}

value negate(const value& v) {
  require_defined(v);
  if (const double* number = v.as<double>()) return {-*number};
  const std::optional<integer> whole = integer_of(v);
  if (!whole) fail("a {} cannot be negated", type_name(v));
  return compute_integers(arithmetic::subtract, 0, *whole);
}

}  // namespace troupe::detail::jinja
