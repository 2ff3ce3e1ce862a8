#include "model/chat/filters.hpp"

#include "model/chat/operators.hpp"
#include "model/chat/text.hpp"

namespace troupe::detail::jinja {
namespace {

value part_of(budget& cost, const value& from, std::string_view part) {
  const bool digits = !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
  if (digits) return item(cost, from, make_integer(std::stol(std::string(part))));
  return item(cost, from, make_text(std::string(part)));
}

value or_else(value found, const value* otherwise) {
  return otherwise && found.is<undefined>() ? *otherwise : found;
}

}  // namespace

filter find_filter(std::string_view name) {
  if (const filter found = find_text_filter(name)) return found;
  if (const filter found = find_number_filter(name)) return found;
  if (const filter found = find_sequence_filter(name)) return found;
  if (const filter found = find_ordering_filter(name)) return found;
  return find_selecting_filter(name);
}

value follow(budget& cost, const value& from, const value& path, const value* otherwise) {
  if (path.is<none>()) return from;
  const std::string* names = text_of(path);
  if (!names) return or_else(item(cost, from, path), otherwise);
  value here = from;
  std::string_view rest = *names;
  for (std::size_t dot; (dot = rest.find('.')) != rest.npos; rest.remove_prefix(dot + 1)) {
    cost.step();
    here = or_else(part_of(cost, here, rest.substr(0, dot)), otherwise);
  }
  return or_else(part_of(cost, here, rest), otherwise);
}

value comparable(const value& v, bool case_sensitive) {
  const std::string* text = text_of(v);
  return text && !case_sensitive ? make_text(lower(*text)) : v;
}

}  // namespace troupe::detail::jinja
