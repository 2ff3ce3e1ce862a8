#pragma once
#include <string_view>

#include "model/chat/runtime.hpp"

namespace troupe::detail::jinja {

/// `subject | name(given)`
using filter = value (*)(budget&, const value& subject, arguments&& given);
/// `subject is name(given)`
using type_test = bool (*)(budget&, const value& subject, arguments&& given);

/// Empty if there is none of that name.
filter find_filter(std::string_view name);
type_test find_test(std::string_view name);

filter find_text_filter(std::string_view name);
filter find_number_filter(std::string_view name);
filter find_sequence_filter(std::string_view name);
filter find_ordering_filter(std::string_view name);
filter find_selecting_filter(std::string_view name);

/// What `attribute=` arguments do: "a.b.0" is followed from item to item, with `otherwise` (may be null) in place of
/// what is not there. None leads nowhere else.
value follow(budget& cost, const value& from, const value& path, const value* otherwise = nullptr);
/// How sort, min, max and unique see a value: strings without regard to case unless asked.
value comparable(const value& v, bool case_sensitive);

/// The functions every template can call: range, namespace, dict, cycler, raise_exception … Undefined if none.
value global_function(std::string_view name);

}  // namespace troupe::detail::jinja
