#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"

/// The values a template computes with. They behave as Python's do: what prints, compares, adds up or counts as true
/// follows Python, because the reference renders templates there.
namespace troupe::detail::jinja {

/// What a template asked for and cannot have. The evaluator adds the place and turns it into an input_error.
class operation_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw operation_error(fmt::format(format, std::forward<Args>(args)...));
}

struct runtime;
struct value;
struct arguments;

/// Wide enough for every integer that JSON carries here (int64 and uint64) and for sums and products of them.
using integer = __int128;

struct undefined {
  std::shared_ptr<const std::string> reason;  // what to say when the template relies on it; may be null
};
struct none {};

/// generator: what Python's lazy filters return. Always true, no length, and empty once walked through.
enum class sequence_kind { list, tuple, view, generator };

/// Never changed after construction, except that walking through a generator consumes it. So sequences and mappings
/// cannot form cycles, and `depth` (levels of nesting) bounds every recursion over them.
struct sequence {
  sequence_kind kind = sequence_kind::list;
  std::vector<value> items;
  std::size_t depth = 1;
  mutable bool consumed = false;
  bool is_group = false;  // groupby's: a tuple whose two items are also .grouper and .list
};

struct mapping {
  std::vector<std::pair<value, value>> entries;  // in order of insertion; keys are unique
  std::size_t depth = 1;
};

/// A macro, a bound method or a global function.
struct callable {
  std::string name;
  std::function<value(runtime&, arguments&&)> call;
  std::size_t depth = 1;
};

/// What namespace() returns: the one thing a template can change.
struct name_space {
  std::vector<std::pair<std::string, value>> attributes;
};

/// What `loop` is inside a for block.
struct loop_state {
  std::shared_ptr<const sequence> items;
  std::size_t index = 0;
  std::size_t depth = 1;                                // of recursion
  std::function<value(runtime&, arguments&&)> descend;  // loop(items); empty unless the block is recursive
  mutable std::shared_ptr<const sequence> last_seen;    // by loop.changed(); null before
};

/// What cycler() returns: its items in turn, over and over.
struct cycler_state {
  std::shared_ptr<const sequence> items;
  std::size_t index = 0;
};

using text_ptr = std::shared_ptr<const std::string>;
using sequence_ptr = std::shared_ptr<const sequence>;
using mapping_ptr = std::shared_ptr<const mapping>;
using callable_ptr = std::shared_ptr<const callable>;
using name_space_ptr = std::shared_ptr<name_space>;
using loop_ptr = std::shared_ptr<const loop_state>;
using cycler_ptr = std::shared_ptr<cycler_state>;

struct value {
  std::variant<undefined, none, bool, integer, double, text_ptr, sequence_ptr, mapping_ptr, callable_ptr,
               name_space_ptr, loop_ptr, cycler_ptr>
      data;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data);
  }
};

struct arguments {
  std::vector<value> positional;
  std::vector<std::pair<std::string, value>> named;
};

value make_text(std::string text);
value make_integer(integer number);
value make_bool(bool truth);
value make_undefined(std::string reason);
value make_sequence(sequence_kind kind, std::vector<value> items);
value make_mapping(std::vector<std::pair<value, value>> entries);

/// The content of a value of that kind; null for anything else.
const std::string* text_of(const value& v);
const sequence* sequence_of(const value& v);
const mapping* mapping_of(const value& v);
/// Integers and booleans, as Python counts them.
std::optional<integer> integer_of(const value& v);
/// Integers, booleans and floats.
std::optional<double> number_of(const value& v);

bool is_kind(const value& v, sequence_kind kind);
/// A list or a tuple: they have indices, and can be joined and repeated.
bool is_indexed(const sequence& list);

/// "str", "list", "dict" … as Python names them in its messages.
std::string_view type_name(const value& v);
/// Fails with the reason when `v` is undefined.
void require_defined(const value& v);
/// Levels of nesting: 0 for plain values.
std::size_t depth_of(const value& v);

/// What `entries`, pairs of a name and something, have under a name; null if nothing.
template <class Entries>
auto* find_named(Entries& entries, std::string_view name) {
  const auto found =
      std::find_if(std::begin(entries), std::end(entries), [&](const auto& entry) { return entry.first == name; });
  return found == std::end(entries) ? nullptr : &found->second;
}

/// The same for a table of functions.
template <class Function, std::size_t Size>
Function find_function(const std::pair<std::string_view, Function> (&table)[Size], std::string_view name) {
  const Function* found = find_named(table, name);
  return found ? *found : nullptr;
}

}  // namespace troupe::detail::jinja
