// Filters that compare items: they sort, group, and find what is unique, smallest or largest.
#include <algorithm>

#include "model/chat/filters.hpp"
#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"

namespace troupe::detail::jinja {
namespace {

struct keyed {
  value key, item;
};

// The sort key: the item itself, or its attributes; several are separated by commas.
value key_of(budget& cost, const value& item, const value* path, bool case_sensitive) {
  if (!path) return comparable(item, case_sensitive);
  const std::string* names = text_of(*path);
  if (!names || names->find(',') == names->npos) return comparable(follow(cost, item, *path), case_sensitive);
  std::vector<value> keys;
  for (std::size_t start = 0, end = 0; end != names->npos; start = end + 1) {
    end = names->find(',', start);
    const std::string name = names->substr(start, end == names->npos ? end : end - start);
    keys.push_back(comparable(follow(cost, item, make_text(name)), case_sensitive));
  }
  return make_sequence(sequence_kind::tuple, std::move(keys));
}

std::vector<keyed> with_keys(budget& cost, const value& subject, const value* path, bool case_sensitive) {
  const sequence_ptr items = iterate(cost, subject);
  cost.take(items->items.size() * sizeof(keyed));
  std::vector<keyed> all;
  for (const value& item : items->items) all.push_back({key_of(cost, item, path, case_sensitive), item});
  return all;
}

void sort_by_key(budget& cost, std::vector<keyed>& all, bool descending) {
  std::stable_sort(all.begin(), all.end(), [&](const keyed& a, const keyed& b) {
    return descending ? order(cost, b.key, a.key) < 0 : order(cost, a.key, b.key) < 0;
  });
}

value sorted(budget& cost, std::vector<keyed> all, bool descending) {
  sort_by_key(cost, all, descending);
  std::vector<value> items;
  for (keyed& entry : all) items.push_back(std::move(entry.item));
  return make_sequence(sequence_kind::list, std::move(items));
}

value sort(budget& cost, const value& subject, arguments&& given) {
  const parameters p("sort", std::move(given), {"reverse", "case_sensitive", "attribute"});
  return sorted(cost, with_keys(cost, subject, p.given(2), p.flag(1, false)), p.flag(0, false));
}

value dictsort(budget& cost, const value& subject, arguments&& given) {
  const parameters p("dictsort", std::move(given), {"case_sensitive", "by", "reverse"});
  const std::string by = p.text(1, "key");
  if (by != "key" && by != "value") fail("dictsort sorts by key or value, not by '{}'", by);
  const mapping* dict = mapping_of(subject);
  if (!dict) fail("dictsort needs a dict, not {}", type_name(subject));
  const value path = make_integer(by == "key" ? 0 : 1);
  const value pairs = items_view(cost, *dict, sequence_kind::list);
  return sorted(cost, with_keys(cost, pairs, &path, p.flag(0, false)), p.flag(2, false));
}

value unique(budget& cost, const value& subject, arguments&& given) {
  const parameters p("unique", std::move(given), {"case_sensitive", "attribute"});
  std::vector<std::pair<value, value>> seen;
  std::vector<value> kept;
  for (keyed& entry : with_keys(cost, subject, p.given(1), p.flag(0, false))) {
    const std::size_t before = seen.size();
    set_entry(cost, seen, std::move(entry.key), {});
    if (seen.size() > before) kept.push_back(std::move(entry.item));
  }
  return make_sequence(sequence_kind::generator, std::move(kept));
}

value extreme(budget& cost, const value& subject, arguments&& given, std::string_view name, bool largest) {
  const parameters p(name, std::move(given), {"case_sensitive", "attribute"});
  const std::vector<keyed> all = with_keys(cost, subject, p.given(1), p.flag(0, false));
  if (all.empty()) return make_undefined(fmt::format("there is no {}, the sequence is empty", name));
  const keyed* best = &all.front();
  for (const keyed& entry : all) {
    const std::partial_ordering than_best = order(cost, entry.key, best->key);
    if (largest ? than_best > 0 : than_best < 0) best = &entry;
  }
  return best->item;
}

value smallest(budget& cost, const value& subject, arguments&& given) {
  return extreme(cost, subject, std::move(given), "min", false);
}

value largest(budget& cost, const value& subject, arguments&& given) {
  return extreme(cost, subject, std::move(given), "max", true);
}

value make_group(budget& cost, value key, std::vector<value> items) {
  cost.take(2 * sizeof(sequence) + (2 + items.size()) * sizeof(value));
  value members = make_sequence(sequence_kind::list, std::move(items));
  sequence group = *sequence_of(make_sequence(sequence_kind::tuple, {std::move(key), std::move(members)}));
  group.is_group = true;
  return {std::make_shared<const sequence>(std::move(group))};
}

// A group is named by the attribute of its first item as it is written there, whatever the case of the others.
value groupby(budget& cost, const value& subject, arguments&& given) {
  const parameters p("groupby", std::move(given), {"attribute", "default", "case_sensitive"}, 1);
  const auto name_of = [&](const value& item) { return follow(cost, item, p.at(0), p.given(1)); };
  const sequence_ptr items = iterate(cost, subject);
  cost.take(items->items.size() * sizeof(keyed));
  std::vector<keyed> all;
  for (const value& item : items->items) all.push_back({comparable(name_of(item), p.flag(2, false)), item});
  sort_by_key(cost, all, false);
  std::vector<value> groups;
  for (auto first = all.begin(), end = first; first != all.end(); first = end) {
    std::vector<value> members;
    for (; end != all.end() && equal(cost, end->key, first->key); ++end) members.push_back(end->item);
    groups.push_back(make_group(cost, name_of(first->item), std::move(members)));
  }
  return make_sequence(sequence_kind::list, std::move(groups));
}

}  // namespace

filter find_ordering_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, filter> table[] = {{"sort", sort},     {"dictsort", dictsort},
                                                                  {"unique", unique}, {"min", smallest},
                                                                  {"max", largest},   {"groupby", groupby}};
  return find_function(table, name);
}

}  // namespace troupe::detail::jinja
