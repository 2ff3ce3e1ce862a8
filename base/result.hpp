#pragma once
#include <cassert>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe {

/// The outcome of a call that may fail in normal operation: the value, or why there is none. Errors are small plain
/// types, one per folder. Exceptions are for starting and loading, asserts for our own mistakes.
template <class T, class E>
class [[nodiscard]] result {
  static_assert(!std::is_same_v<T, E>, "value and error must differ in type");

 public:
  result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
  result(E error) : content_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return content_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const {
    assert(ok());
    return *std::get_if<0>(&content_);
  }
  T& value() {
    assert(ok());
    return *std::get_if<0>(&content_);
  }
  const E& error() const {
    assert(!ok());
    return *std::get_if<1>(&content_);
  }
  const T& operator*() const { return value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, E> content_;
};

}  // namespace troupe
