#pragma once
#include "model/chat/evaluator.hpp"
#include "model/chat/lexer.hpp"

namespace troupe::detail::jinja {

/// Counts how deep an evaluation is inside itself.
class evaluator::deeper {
 public:
  explicit deeper(evaluator& owner) : owner_(owner) {
    if (owner_.depth_ >= owner_.limits_.depth) fail("more than {} levels of evaluation", owner_.limits_.depth);
    ++owner_.depth_;
  }
  ~deeper() { --owner_.depth_; }
  deeper(const deeper&) = delete;

 private:
  evaluator& owner_;
};

/// Runs `body`; a failure inside becomes an input_error that names the place.
template <class Body>
auto evaluator::located(position at, Body body) {
  try {
    return body();
  } catch (const operation_error& error) {
    refuse_at(where_, at, error.what());
  }
}

/// What `body` writes, kept back from the output.
template <class Body>
std::string evaluator::captured(Body body) {
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  // An exception ends the whole rendering, so out_ need not be restored then.
  body();
  out_ = outer;
  return text;
}

/// Runs `body` in a new scope.
template <class Body>
auto evaluator::in_scope(scope_ptr outer, Body body) {
  class restore {
   public:
    restore(scope_ptr& current, scope_ptr inner)
        : current_(current), previous_(std::exchange(current, std::move(inner))) {}
    ~restore() { current_ = std::move(previous_); }

   private:
    scope_ptr& current_;
    scope_ptr previous_;
  };
  const restore after(scope_, std::make_shared<scope>(scope{std::move(outer), {}}));
  return body();
}

}  // namespace troupe::detail::jinja
