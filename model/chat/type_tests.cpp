#include <iterator>
#include <string>
#include <utility>

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
    {"callable", [](const value& v) { return v.is<callable_ptr>() || v.is<loop_ptr>() || v.is<undefined>(); }},
};

template <std::size_t Which>
bool has_trait(budget&, const value& v, arguments&& given) {
  const parameters nothing(traits[Which].first, std::move(given), {});
  return traits[Which].second(v);
}
template <std::size_t... Which>
type_test find_trait(std::string_view name, std::index_sequence<Which...>) {
  static constexpr std::pair<std::string_view, type_test> tests[] = {{traits[Which].first, has_trait<Which>}...};
  return find_function(tests, name);
}

value other(std::string_view name, arguments&& given) {
  const parameters p(name, std::move(given), {"other"}, 1);
  return p.at(0);
}

template <comparison Op>
bool is_compared(budget& cost, const value& v, arguments&& given) {
  constexpr std::string_view names[] = {"eq", "ne", "lt", "le", "gt", "ge", "in"};
  return compare(cost, Op, v, other(names[static_cast<std::size_t>(Op)], std::move(given)));
}

// The very same object: for what templates hold, of the same type and equal.
bool is_same(budget& cost, const value& v, arguments&& given) {
  const value same = other("sameas", std::move(given));
  return v.data.index() == same.data.index() && equal(cost, v, same);
}

bool has_remainder(budget& cost, const value& v, const value& divisor, integer wanted) {
  return equal(cost, compute(cost, arithmetic::modulo, v, divisor), make_integer(wanted));
}
bool is_divisible(budget& cost, const value& v, arguments&& given) {
  return has_remainder(cost, v, other("divisibleby", std::move(given)), 0);
}
bool is_odd(budget& cost, const value& v, arguments&& given) {
  const parameters nothing("odd", std::move(given), {});
  return has_remainder(cost, v, make_integer(2), 1);
}
bool is_even(budget& cost, const value& v, arguments&& given) {
  const parameters nothing("even", std::move(given), {});
  return has_remainder(cost, v, make_integer(2), 0);
}

bool has_case(const std::string& text, std::string (*mapped)(std::string_view)) {
  return mapped(text) == text && lower(text) != upper(text);
}
bool is_lower(budget& cost, const value& v, arguments&& given) {
  const parameters nothing("lower", std::move(given), {});
  return has_case(printed(cost, v), lower);
}
bool is_upper(budget& cost, const value& v, arguments&& given) {
  const parameters nothing("upper", std::move(given), {});
  return has_case(printed(cost, v), upper);
}

bool is_filter(budget&, const value& v, arguments&& given) {
  const parameters nothing("filter", std::move(given), {});
  return text_of(v) && find_filter(*text_of(v));
}
bool is_test(budget&, const value& v, arguments&& given) {
  const parameters nothing("test", std::move(given), {});
  return text_of(v) && find_test(*text_of(v));
}

constexpr std::pair<std::string_view, type_test> tests[] = {
    {"eq", is_compared<comparison::equal>},
    {"equalto", is_compared<comparison::equal>},
    {"==", is_compared<comparison::equal>},
    {"ne", is_compared<comparison::not_equal>},
    {"!=", is_compared<comparison::not_equal>},
    {"lt", is_compared<comparison::less>},
    {"lessthan", is_compared<comparison::less>},
    {"<", is_compared<comparison::less>},
    {"le", is_compared<comparison::less_equal>},
    {"<=", is_compared<comparison::less_equal>},
    {"gt", is_compared<comparison::greater>},
    {"greaterthan", is_compared<comparison::greater>},
    {">", is_compared<comparison::greater>},
    {"ge", is_compared<comparison::greater_equal>},
    {">=", is_compared<comparison::greater_equal>},
    {"in", is_compared<comparison::in>},
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
  if (const type_test test = find_function(tests, name)) return test;
  return find_trait(name, std::make_index_sequence<std::size(traits)>());
}

}  // namespace troupe::detail::jinja
