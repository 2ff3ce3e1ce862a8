#include "model/chat/value.hpp"

namespace troupe::detail::jinja {
namespace {

// Recursion over values (printing, comparing, destroying) goes this deep at most.
constexpr std::size_t deepest_value = 200;

std::size_t one_level_above(std::size_t depth) {
  if (depth >= deepest_value) fail("lists and dicts are nested more than {} levels deep", deepest_value);
  return depth + 1;
}

std::string_view sequence_name(sequence_kind kind) {
  switch (kind) {
    case sequence_kind::tuple:
      return "tuple";
    case sequence_kind::view:
      return "dict_view";
    case sequence_kind::generator:
      return "generator";
    default:
      return "list";
  }
}

}  // namespace

value make_text(std::string text) {
  return {std::make_shared<const std::string>(std::move(text))};
}
value make_integer(integer number) {
  return {number};
}
value make_bool(bool truth) {
  return {truth};
}
value make_undefined(std::string reason) {
  return {undefined{std::make_shared<const std::string>(std::move(reason))}};
}

value make_sequence(sequence_kind kind, std::vector<value> items) {
  std::size_t depth = 0;
  for (const value& item : items) depth = std::max(depth, depth_of(item));
  return {std::make_shared<const sequence>(sequence{kind, std::move(items), one_level_above(depth)})};
}

value make_mapping(std::vector<std::pair<value, value>> entries) {
  std::size_t depth = 0;
  for (const auto& [key, item] : entries) depth = std::max({depth, depth_of(key), depth_of(item)});
  return {std::make_shared<const mapping>(mapping{std::move(entries), one_level_above(depth)})};
}

const std::string* text_of(const value& v) {
  const text_ptr* text = v.as<text_ptr>();
  return text ? text->get() : nullptr;
}

const sequence* sequence_of(const value& v) {
  const sequence_ptr* list = v.as<sequence_ptr>();
  return list ? list->get() : nullptr;
}

const mapping* mapping_of(const value& v) {
  const mapping_ptr* dict = v.as<mapping_ptr>();
  return dict ? dict->get() : nullptr;
}

std::optional<integer> integer_of(const value& v) {
  if (const bool* truth = v.as<bool>()) return *truth;
  if (const integer* number = v.as<integer>()) return *number;
  return std::nullopt;
}

std::optional<double> number_of(const value& v) {
  if (const double* number = v.as<double>()) return *number;
  if (const std::optional<integer> whole = integer_of(v)) return static_cast<double>(*whole);
  return std::nullopt;
}

bool is_kind(const value& v, sequence_kind kind) {
  const sequence* list = sequence_of(v);
  return list && list->kind == kind;
}

bool is_indexed(const sequence& list) {
  return list.kind == sequence_kind::list || list.kind == sequence_kind::tuple;
}

std::string_view type_name(const value& v) {
  static constexpr std::string_view names[] = {"Undefined", "NoneType", "bool",     "int",       "float", "str",
                                               "list",      "dict",     "function", "namespace", "loop",  "cycler"};
  if (const sequence* list = sequence_of(v)) return sequence_name(list->kind);
  return names[v.data.index()];
}

void require_defined(const value& v) {
  const undefined* missing = v.as<undefined>();
  if (missing) fail("{}", missing->reason ? *missing->reason : "the value is undefined");
}

std::size_t depth_of(const value& v) {
  if (const sequence* list = sequence_of(v)) return list->depth;
  if (const mapping* dict = mapping_of(v)) return dict->depth;
  if (const callable_ptr* function = v.as<callable_ptr>()) return (*function)->depth;
  if (const loop_ptr* loop = v.as<loop_ptr>()) return (*loop)->items->depth;
  if (const cycler_ptr* cycler = v.as<cycler_ptr>()) return (*cycler)->items->depth;
  return 0;
}

}  // namespace troupe::detail::jinja
