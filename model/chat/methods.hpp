#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "model/chat/runtime.hpp"

namespace troupe::detail::jinja {

/// self.name(given)
struct method_call {
  budget& cost;
  const value& self;
  std::string_view name;
  arguments given;

  parameters takes(std::initializer_list<std::string_view> names, std::size_t required = 0) {
    return {name, std::move(given), names, required};
  }
};
using method = value (*)(method_call& call);

/// The method a value of this type has under that name; null if none.
method find_text_method(std::string_view name);
method find_container_method(const value& self, std::string_view name);
/// Whether Python has such a method and the reference's sandbox forbids it, because it changes the list or dict.
bool is_forbidden_method(const value& self, std::string_view name);

/// What a loop, or what cycler() made, has under a name; empty if nothing.
std::optional<value> loop_attribute(const loop_ptr& loop, std::string_view name);
std::optional<value> cycler_attribute(const cycler_ptr& cycler, std::string_view name);

/// The (key, value) pairs of a dict.
value items_view(budget& cost, const mapping& dict, sequence_kind kind);

/// "{} of {name}".format(…)
value format_braces(budget& cost, const std::string& format, const arguments& given);

}  // namespace troupe::detail::jinja
