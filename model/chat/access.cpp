#include <algorithm>

#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

value missing_attribute(const value& object, std::string_view name) {
  return make_undefined(fmt::format("{} has no attribute '{}'", type_name(object), name));
}

value bind(const value& self, const std::string& name, method function) {
  const auto call = [self, name, function](runtime& run, arguments&& given) {
    run.cost.scan(self);
    for (const value& argument : given.positional) run.cost.scan(argument);
    method_call bound{run.cost, self, name, std::move(given)};
    return function(bound);
  };
  return {std::make_shared<const callable>(callable{name, call, depth_of(self) + 1})};
}

std::optional<value> bound_method(const value& object, const std::string& name) {
  const method function = text_of(object) ? find_text_method(name) : find_container_method(object, name);
  if (function) return bind(object, name, function);
  if (!is_forbidden_method(object, name)) return std::nullopt;
  return make_undefined(fmt::format("{}.{} changes the {} in place, which templates may not do", type_name(object),
                                    name, type_name(object)));
}

std::optional<value> own_attribute(const value& object, const std::string& name) {
  if (const loop_ptr* loop = object.as<loop_ptr>()) return loop_attribute(*loop, name);
  if (const cycler_ptr* cycler = object.as<cycler_ptr>()) return cycler_attribute(*cycler, name);
  if (const name_space_ptr* space = object.as<name_space_ptr>()) {
    const value* found = find_named((*space)->attributes, name);
    return found ? *found : missing_attribute(object, name);
  }
  if (const sequence* list = sequence_of(object); list && list->is_group) {
    if (name == "grouper") return list->items[0];
    if (name == "list") return list->items[1];
  }
  return bound_method(object, name);
}

// Where a Python index points; `size` or more if outside.
std::size_t position_of(integer index, std::size_t size) {
  const auto count = static_cast<integer>(size);
  if (index < 0) index += count;
  return index >= 0 && index < count ? static_cast<std::size_t>(index) : size;
}

std::optional<value> element(const value& object, integer index) {
  if (const sequence* list = sequence_of(object); list && is_indexed(*list)) {
    const std::size_t at = position_of(index, list->items.size());
    if (at < list->items.size()) return list->items[at];
  } else if (const std::string* text = text_of(object)) {
    const std::size_t size = code_points(*text);
    const std::size_t number = position_of(index, size);
    if (number == size) return std::nullopt;
    const std::size_t at = size == text->size() ? number : byte_offset(*text, number);
    return make_text(text->substr(at, decode(*text, at).length));
  }
  return std::nullopt;
}

// The indices that start:stop:step selects, as Python's slice.indices() has them.
struct selection {
  integer start, stop, step;

  selection(const value& from, const value& to, const value& by, std::size_t size) : step(bound(by, 1)) {
    if (step == 0) fail("a slice's step cannot be zero");
    const auto length = static_cast<integer>(size);
    const integer lowest = step < 0 ? -1 : 0;
    const integer highest = step < 0 ? length - 1 : length;
    const auto clamped = [&](const value& v, integer otherwise) {
      if (v.is<none>()) return otherwise;
      const integer index = bound(v, 0);
      return std::clamp(index < 0 ? index + length : index, lowest, highest);
    };
    start = clamped(from, step < 0 ? highest : lowest);
    stop = clamped(to, step < 0 ? lowest : highest);
  }

  template <class Visit>
  void each(Visit visit) const {
    for (integer i = start; step > 0 ? i < stop : i > stop; i += step) visit(static_cast<std::size_t>(i));
  }

 private:
  static integer bound(const value& v, integer otherwise) {
    require_defined(v);
    if (v.is<none>()) return otherwise;
    const std::optional<integer> number = integer_of(v);
    if (!number) fail("a slice needs whole numbers, not {}", type_name(v));
    // Far outside of any list, and small enough to add to.
    constexpr integer far = integer{1} << 62;
    return std::clamp(*number, -far, far);
  }
};

value slice_text(const std::string& text, const value& start, const value& stop, const value& step) {
  std::string picked;
  if (is_ascii(text)) {
    selection(start, stop, step, text.size()).each([&](std::size_t i) { picked += text[i]; });
  } else {
    const std::vector<std::size_t> starts = code_point_starts(text);
    selection(start, stop, step, starts.size() - 1).each([&](std::size_t i) {
      picked.append(text, starts[i], starts[i + 1] - starts[i]);
    });
  }
  return make_text(std::move(picked));
}

std::vector<value> characters(const std::string& text) {
  std::vector<value> items;
  for_each_point(text,
                 [&](const code_point&, std::string_view bytes) { items.push_back(make_text(std::string(bytes))); });
  return items;
}

sequence_ptr as_sequence(std::vector<value> items) {
  return *make_sequence(sequence_kind::list, std::move(items)).as<sequence_ptr>();
}

}  // namespace

std::size_t length(const value& v) {
  if (const std::string* text = text_of(v)) return code_points(*text);
  if (const sequence* list = sequence_of(v); list && list->kind != sequence_kind::generator) {
    return list->items.size();
  }
  if (const mapping* dict = mapping_of(v)) return dict->entries.size();
  if (const loop_ptr* loop = v.as<loop_ptr>()) return (*loop)->items->items.size();
  if (!v.is<undefined>()) fail("a {} has no length", type_name(v));
  return 0;
}

sequence_ptr iterate(budget& cost, const value& v) {
  cost.scan(v);
  if (const sequence_ptr* list = v.as<sequence_ptr>()) {
    if ((*list)->kind != sequence_kind::generator) return *list;
    return std::exchange((*list)->consumed, true) ? as_sequence({}) : *list;
  }
  if (const std::string* text = text_of(v)) {
    // Each character becomes a value with a string of its own on the heap.
    cost.take(text->size() * text_value_bytes);
    cost.step(text->size());
    return as_sequence(characters(*text));
  }
  if (const mapping* dict = mapping_of(v)) {
    std::vector<value> keys;
    for (const auto& [key, item] : dict->entries) keys.push_back(key);
    return as_sequence(std::move(keys));
  }
  if (!v.is<undefined>()) fail("a {} cannot be iterated over", type_name(v));
  return as_sequence({});
}

value attribute(budget& cost, const value& object, const std::string& name) {
  require_defined(object);
  if (std::optional<value> own = own_attribute(object, name)) return *std::move(own);
  if (const mapping* dict = mapping_of(object)) {
    if (const value* entry = find(cost, *dict, make_text(name))) return *entry;
  }
  return missing_attribute(object, name);
}

value item(budget& cost, const value& object, const value& key) {
  require_defined(object);
  if (const mapping* dict = mapping_of(object)) {
    if (!can_be_key(key)) return make_undefined("no such key");
    if (const value* entry = find(cost, *dict, key)) return *entry;
  } else if (const std::optional<integer> index = integer_of(key)) {
    if (text_of(object)) cost.scan(object);
    if (std::optional<value> found = element(object, *index)) return *std::move(found);
    return make_undefined(fmt::format("{} has no element {}", type_name(object), *index));
  }
  if (const std::string* name = text_of(key)) {
    if (std::optional<value> own = own_attribute(object, *name)) return *std::move(own);
    return missing_attribute(object, *name);
  }
  return make_undefined(fmt::format("{} has no element under that {}", type_name(object), type_name(key)));
}

value slice(const value& object, const value& start, const value& stop, const value& step) {
  require_defined(object);
  if (const std::string* text = text_of(object)) return slice_text(*text, start, stop, step);
  const sequence* list = sequence_of(object);
  if (!list || !is_indexed(*list)) fail("a {} cannot be sliced", type_name(object));
  std::vector<value> picked;
  selection(start, stop, step, list->items.size()).each([&](std::size_t i) { picked.push_back(list->items[i]); });
  return make_sequence(list->kind, std::move(picked));
}

}  // namespace troupe::detail::jinja
