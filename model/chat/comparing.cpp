#include <algorithm>

#include "model/chat/operators.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

bool equal_items(budget& cost, const sequence& a, const sequence& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(cost, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_entries(budget& cost, const mapping& a, const mapping& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, item] : a.entries) {
    const value* other = find(cost, b, key);
    if (!other || !equal(cost, item, *other)) return false;
  }
  return true;
}

template <class Pointer>
bool same_object(const value& a, const value& b) {
  return a.is<Pointer>() && b.is<Pointer>() && *a.as<Pointer>() == *b.as<Pointer>();
}

std::optional<std::partial_ordering> order_numbers(const value& a, const value& b) {
  integer m = 0, n = 0;
  if (integer_of(a, m) && integer_of(b, n)) return m <=> n;
  double x = 0, y = 0;
  if (number_of(a, x) && number_of(b, y)) return x <=> y;
  return std::nullopt;
}

std::partial_ordering order_items(budget& cost, const sequence& a, const sequence& b) {
  for (std::size_t i = 0; i < std::min(a.items.size(), b.items.size()); ++i) {
    if (!equal(cost, a.items[i], b.items[i])) return order(cost, a.items[i], b.items[i]);
  }
  return a.items.size() <=> b.items.size();
}

// Keys cannot change in Python; here nothing can, but what prints must fail where Python fails.
void require_key(budget& cost, const value& v) {
  cost.step();
  const sequence_ptr* list = v.as<sequence_ptr>();
  if (v.is<mapping_ptr>() || (list && (*list)->kind != sequence_kind::tuple))
    fail("a {} cannot be a key", type_name(v));
  if (!list) return;
  for (const value& item : (*list)->items) require_key(cost, item);
}

bool same_key(budget& cost, const value& a, const value& b) {
  const std::string* text = text_of(a);
  const std::string* other = text_of(b);
  if (text && other) return *text == *other;
  return !text && !other && equal(cost, a, b);
}

}  // namespace

bool truthy(const value& v) {
  if (const bool* truth = v.as<bool>()) return *truth;
  if (const std::string* text = text_of(v)) return !text->empty();
  if (const sequence_ptr* list = v.as<sequence_ptr>()) {
    return (*list)->kind == sequence_kind::generator || !(*list)->items.empty();
  }
  if (const mapping_ptr* dict = v.as<mapping_ptr>()) return !(*dict)->entries.empty();
  if (double number = 0; number_of(v, number)) return number != 0;
  return !v.is<undefined>() && !v.is<none>();
}

bool equal(budget& cost, const value& a, const value& b) {
  cost.step();
  if (const auto numbers = order_numbers(a, b)) return *numbers == 0;
  if (a.data.index() != b.data.index()) return false;
  if (const std::string* text = text_of(a)) {
    cost.step(text->size() / 64);
    return *text == *text_of(b);
  }
  if (const sequence_ptr* list = a.as<sequence_ptr>()) return equal_items(cost, **list, **b.as<sequence_ptr>());
  if (const mapping_ptr* dict = a.as<mapping_ptr>()) return equal_entries(cost, **dict, **b.as<mapping_ptr>());
  return a.is<none>() || a.is<undefined>() || same_object<callable_ptr>(a, b) || same_object<name_space_ptr>(a, b) ||
         same_object<loop_ptr>(a, b);
}

std::partial_ordering order(budget& cost, const value& a, const value& b) {
  cost.step();
  require_defined(a);
  require_defined(b);
  if (const auto numbers = order_numbers(a, b)) return *numbers;
  const std::string* text = text_of(a);
  const std::string* other = text_of(b);
  if (text && other) {
    cost.step(std::min(text->size(), other->size()) / 64);
    return *text <=> *other;  // UTF-8 sorts as its code points do
  }
  const sequence_ptr* list = a.as<sequence_ptr>();
  const sequence_ptr* second = b.as<sequence_ptr>();
  if (list && second && (*list)->kind == (*second)->kind) return order_items(cost, **list, **second);
  fail("{} and {} have no order", type_name(a), type_name(b));
}

bool contains(budget& cost, const value& needle, const value& haystack) {
  if (const std::string* text = text_of(haystack)) {
    const std::string* wanted = text_of(needle);
    if (!wanted) fail("'in' a string needs a string on its left, not {}", type_name(needle));
    cost.scan(haystack);
    return find_text(*text, *wanted) != text->npos;
  }
  if (const mapping_ptr* dict = haystack.as<mapping_ptr>()) return find(cost, **dict, needle) != nullptr;
  const sequence_ptr items = iterate(cost, haystack);
  for (const value& item : items->items) {
    if (equal(cost, needle, item)) return true;
  }
  return false;
}

const value* find(budget& cost, const mapping& dict, const value& key) {
  require_key(cost, key);
  cost.step(dict.entries.size() / 8);
  for (const auto& [name, item] : dict.entries) {
    if (same_key(cost, name, key)) return &item;
  }
  return nullptr;
}

void set_entry(budget& cost, std::vector<std::pair<value, value>>& entries, value key, value item) {
  require_key(cost, key);
  cost.step(entries.size() / 8);
  for (auto& [name, old] : entries) {
    if (same_key(cost, name, key)) return void(old = std::move(item));
  }
  cost.take(2 * sizeof(value));
  entries.emplace_back(std::move(key), std::move(item));
}

}  // namespace troupe::detail::jinja
