#include <algorithm>
#include <array>

#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"

namespace troupe::detail::jinja {
namespace {

const sequence& list_of(const value& self) {
  return **self.as<sequence_ptr>();
}
const mapping& dict_of(const value& self) {
  return **self.as<mapping_ptr>();
}

value index(runtime& run, const value& self, arguments&& given) {
  const parameters p("index", std::move(given), {"value"}, 1);
  const std::vector<value>& items = list_of(self).items;
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const value& item) { return equal(run.cost, item, p.at(0)); });
  if (found == items.end()) fail("index: the value is not in the list");
  return make_integer(found - items.begin());
}

value count(runtime& run, const value& self, arguments&& given) {
  const parameters p("count", std::move(given), {"value"}, 1);
  const std::vector<value>& items = list_of(self).items;
  return make_integer(
      std::count_if(items.begin(), items.end(), [&](const value& item) { return equal(run.cost, item, p.at(0)); }));
}

value copy(runtime&, const value& self, arguments&& given) {
  const parameters nothing("copy", std::move(given), {});
  return self;
}

value get(runtime& run, const value& self, arguments&& given) {
  const parameters p("get", std::move(given), {"key", "default"}, 1);
  if (const value* found = find(run.cost, dict_of(self), p.at(0))) return *found;
  return p.find(1) ? p.at(1) : value{none{}};
}

value items(runtime& run, const value& self, arguments&& given) {
  const parameters nothing("items", std::move(given), {});
  return items_view(run.cost, dict_of(self), sequence_kind::view);
}

value keys(runtime&, const value& self, arguments&& given) {
  const parameters nothing("keys", std::move(given), {});
  std::vector<value> found;
  for (const auto& [key, item] : dict_of(self).entries) found.push_back(key);
  return make_sequence(sequence_kind::view, std::move(found));
}

value values(runtime&, const value& self, arguments&& given) {
  const parameters nothing("values", std::move(given), {});
  std::vector<value> found;
  for (const auto& [key, item] : dict_of(self).entries) found.push_back(item);
  return make_sequence(sequence_kind::view, std::move(found));
}

bool is_list(const value& self) {
  const sequence_ptr* list = self.as<sequence_ptr>();
  return list && (*list)->kind == sequence_kind::list;
}

bool is_indexed(const value& self) {
  const sequence_ptr* list = self.as<sequence_ptr>();
  return list && ((*list)->kind == sequence_kind::list || (*list)->kind == sequence_kind::tuple);
}

template <std::size_t Size>
bool among(const std::array<std::string_view, Size>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

value items_view(budget& cost, const mapping& dict, sequence_kind kind) {
  cost.take(dict.entries.size() * 3 * sizeof(value));
  std::vector<value> pairs;
  for (const auto& [key, item] : dict.entries) pairs.push_back(make_sequence(sequence_kind::tuple, {key, item}));
  return make_sequence(kind, std::move(pairs));
}

method find_container_method(const value& self, std::string_view name) {
  if (is_indexed(self)) {
    if (name == "index") return index;
    if (name == "count") return count;
    return name == "copy" && is_list(self) ? copy : nullptr;
  }
  if (!self.is<mapping_ptr>()) return nullptr;
  if (name == "get") return get;
  if (name == "items") return items;
  if (name == "keys") return keys;
  if (name == "values") return values;
  return name == "copy" ? copy : nullptr;
}

bool is_forbidden_method(const value& self, std::string_view name) {
  constexpr std::array<std::string_view, 8> of_lists{"append", "clear",  "extend",  "insert",
                                                     "pop",    "remove", "reverse", "sort"};
  constexpr std::array<std::string_view, 5> of_dicts{"clear", "pop", "popitem", "setdefault", "update"};
  return is_list(self) ? among(of_lists, name) : self.is<mapping_ptr>() && among(of_dicts, name);
}

}  // namespace troupe::detail::jinja
