#pragma once
#include <chrono>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "model/chat/chat_template.hpp"
#include "model/chat/value.hpp"

namespace troupe::detail::jinja {

/// What is left of a rendering's render_limits. Whatever can multiply its input (joining, repeating, replacing) pays
/// here before it builds; everything else is paid for by the evaluator from the sizes it sees.
class budget {
 public:
  explicit budget(const render_limits& limits) : steps_(limits.steps), bytes_(limits.bytes), limits_(limits) {}

  void step(std::size_t count = 1) {
    if (count > steps_) fail("the template takes more than {} evaluation steps", limits_.steps);
    steps_ -= count;
  }
  void take(std::size_t bytes) {
    if (bytes > bytes_) fail("the template builds more than {} bytes", limits_.bytes);
    bytes_ -= bytes;
  }
  /// Pays for looking through all of `v` once (not through what it contains).
  void scan(const value& v);
  /// Pays for a value that was just built.
  void built(const value& v);

 private:
  std::size_t steps_;
  std::size_t bytes_;
  render_limits limits_;
};

/// A string that pays for every byte before it grows.
class text_builder {
 public:
  explicit text_builder(budget& cost) : cost_(cost) {}
  void append(std::string_view piece) {
    cost_.take(piece.size());
    cost_.step(piece.size() / 64);
    text_.append(piece);
  }
  void append(char one) { append(std::string_view(&one, 1)); }
  void repeat(char one, std::size_t count) {
    cost_.take(count);
    text_.append(count, one);
  }
  budget& cost() { return cost_; }
  std::string take() { return std::move(text_); }

 private:
  budget& cost_;
  std::string text_;
};

/// What a short string of its own costs as an element of a list, its place on the heap included.
constexpr std::size_t text_value_bytes = sizeof(value) + 64;

struct scope;

/// One rendering in progress.
struct runtime {
  budget cost;
  std::chrono::system_clock::time_point now;
  bool in_utc;  // what strftime_now writes; otherwise in the system's time zone
  // Namespaces, macros and loops can refer to themselves; keeping and clearing them here frees such cycles.
  std::vector<name_space_ptr> spaces;
  std::vector<std::shared_ptr<scope>> captured;
  std::vector<loop_ptr> watched;  // with something in last_seen
};

/// A call's arguments under the names its callee gives them, checked as Python checks them.
class parameters {
 public:
  parameters(std::string_view callee, arguments&& given, std::initializer_list<std::string_view> names,
             std::size_t required = 0);

  /// Null when the call left it out.
  const value* find(std::size_t index) const { return present_[index] ? &values_[index] : nullptr; }
  const value& at(std::size_t index) const { return values_[index]; }
  /// Null when the call left it out or gave None.
  const value* given(std::size_t index) const {
    return present_[index] && !values_[index].is<none>() ? &values_[index] : nullptr;
  }
  bool flag(std::size_t index, bool otherwise) const;
  integer number(std::size_t index, integer otherwise) const;
  std::string text(std::size_t index, std::string_view otherwise) const;

 private:
  std::string_view callee_;
  std::vector<value> values_;
  std::vector<bool> present_;
};

}  // namespace troupe::detail::jinja
