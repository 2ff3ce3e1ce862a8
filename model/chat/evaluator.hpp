#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/chat/ast.hpp"
#include "model/chat/runtime.hpp"

namespace troupe::detail::jinja {

/// Names and what they stand for, inside those of `outer`. Names belong to the template or the variables.
struct scope {
  std::shared_ptr<scope> outer;
  std::vector<std::pair<std::string_view, value>> names;
};
using scope_ptr = std::shared_ptr<scope>;

/// Walks the tree of one template for one rendering.
class evaluator {
 public:
  evaluator(const std::string& where, const render_options& options);
  ~evaluator();
  evaluator(const evaluator&) = delete;

  std::string render(const block& body, std::vector<std::pair<std::string_view, value>> variables);

 private:
  enum class flow { onward, leave_loop, next_round };
  class deeper;
  struct expression_visitor;
  struct statement_visitor;

  // Expressions: evaluator_expressions.cpp
  value evaluate(const expression& e);
  value evaluate_or_none(const expression_ptr& e);
  arguments evaluate(const call_arguments& given);
  value call_value(const value& callee, arguments&& given);
  value descend(const loop_ptr& loop, arguments&& given);
  value filtered(const expression& use, value subject);
  value lookup(const std::string& name);

  // Statements: evaluator.cpp
  flow execute(const block& body);
  flow execute(const statement& s);
  flow execute_loop(const for_loop& loop, const std::shared_ptr<loop_state>& state);
  bool execute_rounds(const for_loop& loop, const std::shared_ptr<loop_state>& state);
  std::shared_ptr<loop_state> start_loop(const for_loop& loop, const value& iterable);
  value bound_value(const target& from);
  sequence_ptr loop_items(const for_loop& loop, const value& iterable);
  std::string recursive_level(const for_loop& loop, const value& iterable, std::size_t depth);
  value filtered_block(const block& body, const std::vector<expression_ptr>& filters);
  void bind(const target& to, value v);
  void bind_attribute(const target& to, value v);
  void define(std::string_view name, value v);
  void write(std::string_view text);

  // Macros: evaluator_macros.cpp
  value make_macro(const macro& source);
  value run_macro(const macro& source, const scope_ptr& defined_in, arguments&& given);
  void bind_parameters(const macro& source, arguments&& given);
  void bind_named(const macro& source, arguments& given);
  void bind_defaults(const macro& source, std::size_t first);

  // Both: evaluator_support.hpp
  template <class Body>
  auto in_scope(scope_ptr outer, Body body);
  template <class Body>
  auto located(position at, Body body);
  template <class Body>
  std::string captured(Body body);
  void keep_scope();

  const std::string& where_;
  runtime run_;
  render_limits limits_;
  std::size_t depth_ = 0;
  scope_ptr scope_;
  std::string* out_ = nullptr;
};

}  // namespace troupe::detail::jinja
