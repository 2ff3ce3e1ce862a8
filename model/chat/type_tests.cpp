#include <algorithm>
#include <string>

#include "model/chat/filters.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/printing.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

bool is_number(const value& v) {
  return v.is<bool>() || v.is<integer>() || v.is<double>();
}
bool is_iterable(const value& v) {
  return v.is<undefined>() || v.is<text_ptr>() || v.is<sequence_ptr>() || v.is<mapping_ptr>() || v.is<loop_ptr>();
}
bool is_sequence(const value& v) {
  return text_of(v) || mapping_of(v) || v.is<undefined>() || (sequence_of(v) && is_indexed(*sequence_of(v)));
}

// Tests without arguments that look at the value alone.
using trait = bool (*)(const value&);
constexpr std::pair<std::string_view, trait> traits[] = {
    {"defined", [](const value& v) { return !v.is<undefined>(); }},
    {"undefined", [](const value& v) { return v.is<undefined>(); }},
    {"none", [](const value& v) { return v.is<none>(); }},
    {"string", [](const value& v) { return v.is<text_ptr>(); }},
    {"number", is_number},
    {"integer", [](const value& v) { return v.is<integer>(); }},
    {"float", [](const value& v) { return v.is<double>(); }},
    {"boolean", [](const value& v) { return v.is<bool>(); }},
    {"true", [](const value& v) { return v.is<bool>() && *v.as<bool>(); }},
    {"false", [](const value& v) { return v.is<bool>() && !*v.as<bool>(); }},
    {"mapping", [](const value& v) { return v.is<mapping_ptr>(); }},
    {"iterable", is_iterable},
    {"sequence", is_sequence},
    {"callable", [](const value& v) { return v.is<callable_ptr>(); }},
};

value other(std::string_view name, arguments&& given) {
  const parameters p(name, std::move(given), {"other"}, 1);
  return p.at(0);
}

bool is_equal(runtime& run, const value& v, arguments&& given) {
  return equal(run.cost, v, other("eq", std::move(given)));
}
bool is_unequal(runtime& run, const value& v, arguments&& given) {
  return !equal(run.cost, v, other("ne", std::move(given)));
}
bool is_less(runtime& run, const value& v, arguments&& given) {
  return order(run.cost, v, other("lt", std::move(given))) < 0;
}
bool is_less_or_equal(runtime& run, const value& v, arguments&& given) {
  return order(run.cost, v, other("le", std::move(given))) <= 0;
}
bool is_greater(runtime& run, const value& v, arguments&& given) {
  return order(run.cost, v, other("gt", std::move(given))) > 0;
}
bool is_greater_or_equal(runtime& run, const value& v, arguments&& given) {
  return order(run.cost, v, other("ge", std::move(given))) >= 0;
}
bool is_in(runtime& run, const value& v, arguments&& given) {
  return contains(run.cost, v, other("in", std::move(given)));
}

// The very same object: for what templates hold, of the same type and equal.
bool is_same(runtime& run, const value& v, arguments&& given) {
  const value same = other("sameas", std::move(given));
  return v.data.index() == same.data.index() && equal(run.cost, v, same);
}

bool has_remainder(runtime& run, const value& v, const value& divisor, integer wanted) {
  return equal(run.cost, compute(run.cost, arithmetic::modulo, v, divisor), make_integer(wanted));
}
bool is_divisible(runtime& run, const value& v, arguments&& given) {
  return has_remainder(run, v, other("divisibleby", std::move(given)), 0);
}
bool is_odd(runtime& run, const value& v, arguments&& given) {
  const parameters nothing("odd", std::move(given), {});
  return has_remainder(run, v, make_integer(2), 1);
}
bool is_even(runtime& run, const value& v, arguments&& given) {
  const parameters nothing("even", std::move(given), {});
  return has_remainder(run, v, make_integer(2), 0);
}

bool has_case(const std::string& text, std::string (*mapped)(std::string_view)) {
  return mapped(text) == text && lower(text) != upper(text);
}
bool is_lower(runtime& run, const value& v, arguments&& given) {
  const parameters nothing("lower", std::move(given), {});
  return has_case(printed(run.cost, v), lower);
}
bool is_upper(runtime& run, const value& v, arguments&& given) {
  const parameters nothing("upper", std::move(given), {});
  return has_case(printed(run.cost, v), upper);
}

bool is_filter(runtime&, const value& v, arguments&& given) {
  const parameters nothing("filter", std::move(given), {});
  return text_of(v) && find_filter(*text_of(v));
}
bool is_test(runtime&, const value& v, arguments&& given) {
  const parameters nothing("test", std::move(given), {});
  return text_of(v) && find_test(*text_of(v));
}

using test_function = bool (*)(runtime&, const value&, arguments&&);
constexpr std::pair<std::string_view, test_function> tests[] = {
    {"eq", is_equal},
    {"equalto", is_equal},
    {"==", is_equal},
    {"ne", is_unequal},
    {"!=", is_unequal},
    {"lt", is_less},
    {"lessthan", is_less},
    {"<", is_less},
    {"le", is_less_or_equal},
    {"<=", is_less_or_equal},
    {"gt", is_greater},
    {"greaterthan", is_greater},
    {">", is_greater},
    {"ge", is_greater_or_equal},
    {">=", is_greater_or_equal},
    {"in", is_in},
    {"sameas", is_same},
    {"divisibleby", is_divisible},
    {"odd", is_odd},
    {"even", is_even},
    {"lower", is_lower},
    {"upper", is_upper},
    {"filter", is_filter},
    {"test", is_test},
};

}  // namespace

type_test find_test(std::string_view name) {
  if (const test_function test = find_function(tests, name)) return test;
  const auto* known =
      std::find_if(std::begin(traits), std::end(traits), [&](const auto& t) { return t.first == name; });
  if (known == std::end(traits)) return nullptr;
  return [known](runtime&, const value& v, arguments&& given) {
    const parameters nothing(known->first, std::move(given), {});
    return known->second(v);
  };
}

}  // namespace troupe::detail::jinja
