#include <algorithm>

#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"

namespace troupe::detail::jinja {
namespace {

value index(method_call& call) {
  const parameters p = call.takes({"value"}, 1);
  const std::vector<value>& items = sequence_of(call.self)->items;
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const value& item) { return equal(call.cost, item, p.at(0)); });
  if (found == items.end()) fail("index: the value is not in the list");
  return make_integer(found - items.begin());
}

value count(method_call& call) {
  const parameters p = call.takes({"value"}, 1);
  const std::vector<value>& items = sequence_of(call.self)->items;
  return make_integer(
      std::count_if(items.begin(), items.end(), [&](const value& item) { return equal(call.cost, item, p.at(0)); }));
}

value copy(method_call& call) {
  call.takes({});
  return call.self;
}

value get(method_call& call) {
  const parameters p = call.takes({"key", "default"}, 1);
  if (const value* found = find(call.cost, *mapping_of(call.self), p.at(0))) return *found;
  return p.find(1) ? p.at(1) : value{none{}};
}

value items(method_call& call) {
  call.takes({});
  return items_view(call.cost, *mapping_of(call.self), sequence_kind::view);
}

value keys(method_call& call) {
  call.takes({});
  std::vector<value> found;
  for (const auto& [key, item] : mapping_of(call.self)->entries) found.push_back(key);
  return make_sequence(sequence_kind::view, std::move(found));
}

value values(method_call& call) {
  call.takes({});
  std::vector<value> found;
  for (const auto& [key, item] : mapping_of(call.self)->entries) found.push_back(item);
  return make_sequence(sequence_kind::view, std::move(found));
}

}  // namespace

value items_view(budget& cost, const mapping& dict, sequence_kind kind) {
  cost.take(dict.entries.size() * 3 * sizeof(value));
  std::vector<value> pairs;
  for (const auto& [key, item] : dict.entries) pairs.push_back(make_sequence(sequence_kind::tuple, {key, item}));
  return make_sequence(kind, std::move(pairs));
}

method find_container_method(const value& self, std::string_view name) {
  if (const sequence* list = sequence_of(self); list && is_indexed(*list)) {
    if (name == "index") return index;
    if (name == "count") return count;
    return name == "copy" && is_kind(self, sequence_kind::list) ? copy : nullptr;
  }
  if (!mapping_of(self)) return nullptr;
  if (name == "get") return get;
  if (name == "items") return items;
  if (name == "keys") return keys;
  if (name == "values") return values;
  return name == "copy" ? copy : nullptr;
}

bool is_forbidden_method(const value& self, std::string_view name) {
  static constexpr std::string_view of_lists[] = {"append", "clear",  "extend",  "insert",
                                                  "pop",    "remove", "reverse", "sort"};
  static constexpr std::string_view of_dicts[] = {"clear", "pop", "popitem", "setdefault", "update"};
  const auto among = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return is_kind(self, sequence_kind::list) ? among(of_lists) : mapping_of(self) && among(of_dicts);
}

}  // namespace troupe::detail::jinja
