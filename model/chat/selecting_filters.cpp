#include "model/chat/filters.hpp"
#include "model/chat/operators.hpp"

namespace troupe::detail::jinja {
namespace {

value take_first(arguments& given, std::string_view name) {
  if (given.positional.empty()) fail("{} lacks an argument", name);
  value first = std::move(given.positional.front());
  given.positional.erase(given.positional.begin());
  return first;
}

std::string take_name(arguments& given, std::string_view name) {
  const value first = take_first(given, name);
  if (!text_of(first)) fail("{} needs a name, not {}", name, type_name(first));
  return *text_of(first);
}

// Nothing at all (None, 0, …) counts as no items here.
sequence_ptr items_of(budget& cost, const value& subject) {
  return iterate(cost, truthy(subject) ? subject : value{});
}

value pick_attributes(budget& cost, const value& subject, arguments&& given) {
  const parameters p("map", std::move(given), {"attribute", "default"}, 1);
  std::vector<value> picked;
  const sequence_ptr items = items_of(cost, subject);
  for (const value& item : items->items) {
    cost.step();
    picked.push_back(follow(cost, item, p.at(0), p.given(1)));
  }
  return make_sequence(sequence_kind::generator, std::move(picked));
}

value map(budget& cost, const value& subject, arguments&& given) {
  if (given.positional.empty()) return pick_attributes(cost, subject, std::move(given));
  const std::string name = take_name(given, "map");
  const filter function = find_filter(name);
  if (!function) fail("there is no filter named '{}'", name);
  std::vector<value> mapped;
  const sequence_ptr items = items_of(cost, subject);
  for (const value& item : items->items) {
    cost.step();
    cost.scan(item);
    mapped.push_back(function(cost, item, arguments(given)));
    cost.built(mapped.back());
  }
  return make_sequence(sequence_kind::generator, std::move(mapped));
}

// Keeps the items whose (attribute's) test comes out as `wanted`.
value select_by(budget& cost, const value& subject, arguments&& given, std::string_view name, bool by_attribute,
                bool wanted) {
  const value path = by_attribute ? take_first(given, name) : value{};
  const std::string test_name = given.positional.empty() ? "" : take_name(given, name);
  const type_test test = test_name.empty() ? nullptr : find_test(test_name);
  if (!test && !test_name.empty()) fail("there is no test named '{}'", test_name);
  std::vector<value> kept;
  const sequence_ptr items = items_of(cost, subject);
  for (const value& item : items->items) {
    cost.step();
    const value tested = by_attribute ? follow(cost, item, path) : item;
    const bool holds = test ? test(cost, tested, arguments(given)) : truthy(tested);
    if (holds == wanted) kept.push_back(item);
  }
  return make_sequence(sequence_kind::generator, std::move(kept));
}

value select(budget& cost, const value& subject, arguments&& given) {
  return select_by(cost, subject, std::move(given), "select", false, true);
}
value reject(budget& cost, const value& subject, arguments&& given) {
  return select_by(cost, subject, std::move(given), "reject", false, false);
}
value selectattr(budget& cost, const value& subject, arguments&& given) {
  return select_by(cost, subject, std::move(given), "selectattr", true, true);
}
value rejectattr(budget& cost, const value& subject, arguments&& given) {
  return select_by(cost, subject, std::move(given), "rejectattr", true, false);
}

}  // namespace

filter find_selecting_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, filter> table[] = {
      {"map", map}, {"select", select}, {"reject", reject}, {"selectattr", selectattr}, {"rejectattr", rejectattr}};
  return find_function(table, name);
}

}  // namespace troupe::detail::jinja
