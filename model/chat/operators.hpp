#pragma once
#include <compare>

#include "model/chat/runtime.hpp"

namespace troupe::detail::jinja {

bool truthy(const value& v);
bool equal(budget& cost, const value& a, const value& b);
/// Fails unless Python can order the two.
std::partial_ordering order(budget& cost, const value& a, const value& b);
/// `needle in haystack`
bool contains(budget& cost, const value& needle, const value& haystack);

enum class comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };
bool compare(budget& cost, comparison op, const value& a, const value& b);

enum class arithmetic { add, subtract, multiply, divide, floor_divide, modulo, power };
value compute(budget& cost, arithmetic op, const value& a, const value& b);
value negate(const value& v);

/// Python can hash it, except for what a tuple contains.
bool can_be_key(const value& v);
/// The value under a key; null if there is none. Fails for keys that Python cannot hash.
const value* find(budget& cost, const mapping& dict, const value& key);
void set_entry(budget& cost, std::vector<std::pair<value, value>>& entries, value key, value item);

/// len(); fails for what has no length.
std::size_t length(const value& v);
/// What a for loop walks through. Consumes a generator.
sequence_ptr iterate(budget& cost, const value& v);

/// a.name: methods first, then the entry of that name.
value attribute(budget& cost, const value& object, const std::string& name);
/// a[key]: the entry first, then the attribute of that name.
value item(budget& cost, const value& object, const value& key);
/// a[start:stop:step]; none() where the template left one out.
value slice(const value& object, const value& start, const value& stop, const value& step);

/// What may also be given as one printf-style text: `format % arguments`.
value format_percent(budget& cost, const std::string& format, const arguments& given);

}  // namespace troupe::detail::jinja
