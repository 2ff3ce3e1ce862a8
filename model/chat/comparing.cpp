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
  if (const auto m = integer_of(a), n = integer_of(b); m && n) return *m <=> *n;
  if (const auto x = number_of(a), y = number_of(b); x && y) return *x <=> *y;
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
  if (!can_be_key(v)) fail("a {} cannot be a key", type_name(v));
  const sequence* tuple = sequence_of(v);
  if (!tuple) return;
  for (const value& item : tuple->items) require_key(cost, item);
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
  if (const sequence* list = sequence_of(v)) {
    return list->kind == sequence_kind::generator || !list->items.empty();
  }
  if (const mapping* dict = mapping_of(v)) return !dict->entries.empty();
  if (const std::optional<double> number = number_of(v)) return *number != 0;
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
  if (const sequence* list = sequence_of(a)) return equal_items(cost, *list, *sequence_of(b));
  if (const mapping* dict = mapping_of(a)) return equal_entries(cost, *dict, *mapping_of(b));
  return a.is<none>() || a.is<undefined>() || same_object<callable_ptr>(a, b) || same_object<name_space_ptr>(a, b) ||
         same_object<loop_ptr>(a, b) || same_object<cycler_ptr>(a, b);
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
  const sequence* list = sequence_of(a);
  const sequence* second = sequence_of(b);
  if (list && second && list->kind == second->kind) return order_items(cost, *list, *second);
  fail("{} and {} have no order", type_name(a), type_name(b));
}

bool contains(budget& cost, const value& needle, const value& haystack) {
  if (const std::string* text = text_of(haystack)) {
    const std::string* wanted = text_of(needle);
    if (!wanted) fail("'in' a string needs a string on its left, not {}", type_name(needle));
    cost.scan(haystack);
    return find_text(*text, *wanted) != text->npos;
  }
  if (const mapping* dict = mapping_of(haystack)) return find(cost, *dict, needle) != nullptr;
  const sequence_ptr items = iterate(cost, haystack);
  for (const value& item : items->items) {
    if (equal(cost, needle, item)) return true;
  }
  return false;
}

bool compare(budget& cost, comparison op, const value& a, const value& b) {
  switch (op) {
    case comparison::equal:
      return equal(cost, a, b);
    case comparison::not_equal:
      return !equal(cost, a, b);
    case comparison::less:
      return order(cost, a, b) < 0;
    case comparison::less_equal:
      return order(cost, a, b) <= 0;
    case comparison::greater:
      return order(cost, a, b) > 0;
    case comparison::greater_equal:
      return order(cost, a, b) >= 0;
    case comparison::in:
      return contains(cost, a, b);
    default:
      return !contains(cost, a, b);
  }
}

bool can_be_key(const value& v) {
  return !v.is<mapping_ptr>() && (!v.is<sequence_ptr>() || is_kind(v, sequence_kind::tuple));
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
