#include <algorithm>

#include "model/chat/filters.hpp"
#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/printing.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

value count_filter(budget&, const value& subject, arguments&& given) {
  const parameters nothing("length", std::move(given), {});
  return make_integer(static_cast<integer>(length(subject)));
}

value first(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing("first", std::move(given), {});
  const sequence_ptr items = iterate(cost, subject);
  return items->items.empty() ? make_undefined("there is no first item, the sequence is empty") : items->items.front();
}

value last(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing("last", std::move(given), {});
  if (!subject.is<undefined>()) length(subject);  // fails for generators, as Python's reversed() does
  const sequence_ptr items = iterate(cost, subject);
  return items->items.empty() ? make_undefined("there is no last item, the sequence is empty") : items->items.back();
}

value to_list(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing("list", std::move(given), {});
  return make_sequence(sequence_kind::list, iterate(cost, subject)->items);
}

value items_filter(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing("items", std::move(given), {});
  if (subject.is<undefined>()) return make_sequence(sequence_kind::generator, {});
  const mapping* dict = mapping_of(subject);
  if (!dict) fail("items needs a dict, not {}", type_name(subject));
  return items_view(cost, *dict, sequence_kind::generator);
}

value join_filter(budget& cost, const value& subject, arguments&& given) {
  const parameters p("join", std::move(given), {"d", "attribute"});
  const std::string separator = p.find(0) ? printed(cost, p.at(0)) : "";
  const value* path = p.given(1);
  text_builder out(cost);
  bool starts = true;
  const sequence_ptr items = iterate(cost, subject);
  for (const value& item : items->items) {
    if (!std::exchange(starts, false)) out.append(separator);
    print(out, path ? follow(cost, item, *path) : item);
  }
  return make_text(out.take());
}

value reverse(budget& cost, const value& subject, arguments&& given) {
  const parameters nothing("reverse", std::move(given), {});
  const value backwards = make_integer(-1);
  if (text_of(subject)) return slice(subject, {none{}}, {none{}}, backwards);
  std::vector<value> items = iterate(cost, subject)->items;
  std::reverse(items.begin(), items.end());
  return make_sequence(sequence_kind::generator, std::move(items));
}

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

value sorted(budget& cost, std::vector<keyed> all, bool descending) {
  std::stable_sort(all.begin(), all.end(), [&](const keyed& a, const keyed& b) {
    return descending ? order(cost, b.key, a.key) < 0 : order(cost, a.key, b.key) < 0;
  });
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

value sum(budget& cost, const value& subject, arguments&& given) {
  const parameters p("sum", std::move(given), {"attribute", "start"});
  const value* path = p.given(0);
  value total = p.find(1) ? p.at(1) : make_integer(0);
  if (text_of(total)) fail("sum does not join strings; join does");
  const sequence_ptr items = iterate(cost, subject);
  for (const value& item : items->items) {
    total = compute(cost, arithmetic::add, total, path ? follow(cost, item, *path) : item);
    cost.built(total);
  }
  return total;
}

value otherwise(budget&, const value& subject, arguments&& given) {
  const parameters p("default", std::move(given), {"default_value", "boolean"});
  const bool replaced = subject.is<undefined>() || (p.flag(1, false) && !truthy(subject));
  if (!replaced) return subject;
  return p.find(0) ? p.at(0) : make_text("");
}

value attr(budget& cost, const value& subject, arguments&& given) {
  const parameters p("attr", std::move(given), {"name"}, 1);
  if (subject.is<mapping_ptr>()) return make_undefined("attr does not look into a dict; use an index");
  return attribute(cost, subject, p.text(0, ""));
}

}  // namespace

filter find_sequence_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, filter> table[] = {
      {"length", count_filter}, {"count", count_filter}, {"first", first},     {"last", last}, {"list", to_list},
      {"items", items_filter},  {"join", join_filter},   {"reverse", reverse}, {"sort", sort}, {"dictsort", dictsort},
      {"unique", unique},       {"min", smallest},       {"max", largest},     {"sum", sum},   {"default", otherwise},
      {"d", otherwise},         {"attr", attr},
  };
  return find_function(table, name);
}

}  // namespace troupe::detail::jinja
