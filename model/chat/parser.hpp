#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/chat/ast.hpp"
#include "model/chat/lexer.hpp"

namespace troupe::detail::jinja {

/// Turns tokens into a template's tree. Every failure is an input_error with line and column.
class parser {
 public:
  parser(std::vector<token> tokens, const std::string& where) : tokens_(std::move(tokens)), where_(where) {}

  block parse_template();

 private:
  // What break and continue, and a macro's caller, varargs and kwargs, need to know about the place they are in.
  struct surroundings {
    bool in_loop = false;
    macro* inside = nullptr;
  };
  // Counts how deep the parser is inside itself, so that no source can exhaust the stack.
  class nested {
   public:
    explicit nested(parser& owner);
    ~nested() { --owner_.depth_; }
    nested(const nested&) = delete;

   private:
    parser& owner_;
  };

  // Statements: parser_statements.cpp
  block parse_block(std::initializer_list<std::string_view> ends);
  std::unique_ptr<const statement> parse_tag();
  statement parse_if(position at);
  statement parse_for(position at);
  statement parse_set(position at);
  statement parse_macro(position at);
  statement parse_call_block(position at);
  statement parse_filter_block(position at);
  statement parse_with(position at);
  statement parse_generation(position at);
  statement parse_loop_jump(position at, bool leaves);
  target parse_target(bool with_attributes);
  target parse_one_target(bool with_attributes);
  void parse_parameters(macro& into);
  std::vector<expression_ptr> parse_filter_chain();
  block parse_body_of_its_own(std::string_view end, macro* inside);
  block parse_otherwise(std::string_view end);
  void end_block(std::string_view end);
  void end_tag();

  // Operators: parser_operators.cpp
  expression_ptr parse_expression() { return parse_choice(true); }
  // Without `with_if` an "if" behind it is left alone: it belongs to the tag.
  expression_ptr parse_choice(bool with_if);
  expression_ptr parse_tuple(bool with_if);
  using operand_rule = expression_ptr (parser::*)();
  using operator_symbol = std::pair<std::string_view, arithmetic>;
  expression_ptr parse_or();
  expression_ptr parse_and();
  expression_ptr parse_logical(std::string_view name, bool conjunction, operand_rule parse_operand);
  expression_ptr parse_not();
  expression_ptr parse_comparison();
  expression_ptr parse_sum();
  expression_ptr parse_concatenation();
  expression_ptr parse_product();
  expression_ptr parse_power();
  expression_ptr parse_arithmetic(std::span<const operator_symbol> symbols, operand_rule parse_operand);
  expression_ptr parse_filtered() { return parse_unary(true); }
  expression_ptr parse_unary(bool with_filters);

  // Operands: parser_operands.cpp
  expression_ptr parse_primary();
  expression_ptr parse_literal_or_name(const token& first);
  expression_ptr parse_number(const token& digits);
  expression_ptr parse_list();
  expression_ptr parse_dict();
  expression_ptr parse_postfix(expression_ptr object);
  expression_ptr parse_filters(expression_ptr subject);
  expression_ptr parse_filter(expression_ptr subject, position at);
  expression_ptr parse_test(expression_ptr subject, position at);
  expression_ptr parse_attribute(expression_ptr object, position at);
  expression_ptr parse_subscript(expression_ptr object, position at);
  template <class ParseOne>
  void parse_items(std::string_view open, std::string_view close, ParseOne parse_one);
  call_arguments parse_arguments();
  void parse_argument(call_arguments& into);
  bool at_test_argument() const;

  // Tokens and nodes: parser.cpp
  expression_ptr make(position at, expression_node node);
  const token& here() const { return tokens_[next_]; }
  const token& ahead() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  const token& take();
  bool at_symbol(std::string_view symbol) const;
  bool at_name(std::string_view name) const;
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  const token& take_name();
  [[noreturn]] void refuse_token(std::string_view expected) const;

  std::vector<token> tokens_;
  const std::string& where_;
  std::size_t next_ = 0;
  std::size_t depth_ = 0;
  surroundings around_;
  // Filters and tests that nobody knows, each with its refusal. Those in conditions and their branches are left out
  // again: a template may have them for other engines, and they fail where rendering comes to them.
  std::vector<std::pair<position, std::string>> unknown_;
};

/// Items between brackets, with commas between them and perhaps one behind the last.
template <class ParseOne>
void parser::parse_items(std::string_view open, std::string_view close, ParseOne parse_one) {
  expect_symbol(open);
  for (bool first = true; !at_symbol(close); first = false) {
    if (!first) expect_symbol(",");
    if (at_symbol(close)) break;
    parse_one();
  }
  expect_symbol(close);
}

}  // namespace troupe::detail::jinja
