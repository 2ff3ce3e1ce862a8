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
  // What Python's reversed() refuses becomes a list first.
  const bool is_generator = is_kind(subject, sequence_kind::generator);
  return make_sequence(is_generator ? sequence_kind::list : sequence_kind::generator, std::move(items));
}

// A list of `some` items and `more` that are all the same, paid for before it is built.
value padded_list(budget& cost, std::vector<value> some, integer more, const value* filler) {
  constexpr integer beyond_any_memory = integer{1} << 40;
  const auto count = static_cast<std::size_t>(filler ? std::clamp(more, integer{0}, beyond_any_memory) : 0);
  cost.step(1 + count / 4);
  cost.take(sizeof(sequence) + (some.size() + count) * sizeof(value));
  if (count > 0) some.insert(some.end(), count, *filler);
  return make_sequence(sequence_kind::list, std::move(some));
}

// As in the reference, a batch is full at exactly `linecount` items: never below 0, and at 0 before the first one only.
value batch(budget& cost, const value& subject, arguments&& given) {
  const parameters p("batch", std::move(given), {"linecount", "fill_with"}, 1);
  const integer full = p.number(0, 0);
  const sequence_ptr items = iterate(cost, subject);
  std::vector<value> batches, next;
  for (const value& item : items->items) {
    if (static_cast<integer>(next.size()) == full)
      batches.push_back(padded_list(cost, std::exchange(next, {}), 0, nullptr));
    next.push_back(item);
  }
  const integer lacking = full - static_cast<integer>(next.size());
  if (!next.empty()) batches.push_back(padded_list(cost, std::move(next), lacking, p.given(1)));
  return make_sequence(sequence_kind::generator, std::move(batches));
}

// The first slices have one item more where the items do not divide evenly; the others are filled up to as many.
value slice_filter(budget& cost, const value& subject, arguments&& given) {
  const parameters p("slice", std::move(given), {"slices", "fill_with"}, 1);
  const integer count = p.number(0, 0);
  if (count == 0) fail("slice: the number of slices cannot be zero");
  const sequence_ptr items = iterate(cost, subject);
  const auto size = static_cast<integer>(items->items.size());
  std::vector<value> slices;
  auto next = items->items.begin();
  for (integer i = 0; i < count; ++i) {
    const bool has_extra = i < size % count;
    const auto end = next + static_cast<std::ptrdiff_t>(size / count + (has_extra ? 1 : 0));
    slices.push_back(padded_list(cost, {std::exchange(next, end), end}, has_extra ? 0 : 1, p.given(1)));
  }
  return make_sequence(sequence_kind::generator, std::move(slices));
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
      {"length", count_filter}, {"count", count_filter}, {"first", first},      {"last", last},
      {"list", to_list},        {"items", items_filter}, {"join", join_filter}, {"reverse", reverse},
      {"batch", batch},         {"slice", slice_filter}, {"sum", sum},          {"default", otherwise},
      {"d", otherwise},         {"attr", attr},
  };
  return find_function(table, name);
}

}  // namespace troupe::detail::jinja
