#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/chat/filters.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/value.hpp"

/// A parsed template: statements that write text, over expressions that yield values.
namespace troupe::detail::jinja {

struct position {
  std::size_t line = 1;
  std::size_t column = 1;
};

struct expression;
using expression_ptr = std::unique_ptr<const expression>;

struct call_arguments {
  std::vector<expression_ptr> positional;
  std::vector<std::pair<std::string, expression_ptr>> named;
  expression_ptr unpacked;  // f(*these): further positional ones; may be null
};

struct literal {
  value constant;
};
struct name_reference {
  std::string name;
};
struct sequence_display {
  sequence_kind kind;
  std::vector<expression_ptr> items;
};
struct mapping_display {
  std::vector<std::pair<expression_ptr, expression_ptr>> entries;
};
struct attribute_access {
  expression_ptr object;
  std::string name;
};
struct item_access {
  expression_ptr object, key;
};
struct slice_access {
  expression_ptr object, start, stop, step;  // the last three may be null
};
struct call {
  expression_ptr callee;
  call_arguments given;
};
struct filter_use {
  expression_ptr subject;  // null in {% filter %} and {% set x | filter %}, where the block's text is filtered
  filter function;         // null where nobody knows the name
  call_arguments given;
  std::string name;
};
struct test_use {
  expression_ptr subject;
  type_test function;  // null where nobody knows the name
  call_arguments given;
  std::string name;
};
struct arithmetic_use {
  arithmetic op;
  expression_ptr left, right;
};
/// a ~ b ~ c
struct concatenation {
  std::vector<expression_ptr> parts;
};
/// a < b <= c
struct comparison_chain {
  expression_ptr first;
  std::vector<std::pair<comparison, expression_ptr>> rest;
};
struct logical {
  bool conjunction;  // and; otherwise or
  expression_ptr left, right;
};
struct negation {
  expression_ptr operand;  // not
};
struct sign {
  bool negative;
  expression_ptr operand;
};
struct choice {
  expression_ptr condition, then, otherwise;  // the last may be null: undefined
};

using expression_node = std::variant<literal, name_reference, sequence_display, mapping_display, attribute_access,
                                     item_access, slice_access, call, filter_use, test_use, arithmetic_use,
                                     concatenation, comparison_chain, logical, negation, sign, choice>;

struct expression {
  position at;
  std::size_t depth;  // levels below and including this one
  expression_node node;
};

struct statement;
using block = std::vector<std::unique_ptr<const statement>>;

/// What an assignment or a for loop binds: a name, an attribute of a namespace, or several of them.
struct target {
  std::string name;       // empty if `several` has them
  std::string attribute;  // of the namespace `name`; may be empty
  std::vector<target> several;
};

struct text_output {
  std::string text;
};
struct print_output {
  expression_ptr shown;
};
struct conditional {
  std::vector<std::pair<expression_ptr, block>> branches;
  block otherwise;
};
struct for_loop {
  target bound;
  expression_ptr iterable;
  expression_ptr condition;  // may be null
  bool recursive = false;    // loop(items) runs the block over these
  block body;
  block otherwise;
};
struct assignment {
  target bound;
  expression_ptr assigned;
};
/// {% set x %}…{% endset %}
struct block_assignment {
  target bound;
  std::vector<expression_ptr> filters;  // each a filter_use without subject
  block body;
};
struct macro {
  std::string name;
  std::vector<std::pair<std::string, expression_ptr>> parameters;  // with their defaults, which may be null
  bool takes_caller = false;                                       // its body mentions caller
  bool takes_more_positional = false;                              // its body mentions varargs
  bool takes_more_named = false;                                   // its body mentions kwargs
  block body;
};
/// {% call(a) f() %}…{% endcall %}: f may call what is inside as caller(a).
struct call_block {
  expression_ptr called;  // a call
  macro caller;
};
struct filter_block {
  std::vector<expression_ptr> filters;
  block body;
};
/// {% with a = 1 %} and {% generation %}: a scope of its own.
struct scoped_block {
  std::vector<std::pair<target, expression_ptr>> bound;
  block body;
};
struct loop_jump {
  bool leaves;  // break; otherwise continue
};

struct statement {
  position at;
  std::variant<text_output, print_output, conditional, for_loop, assignment, block_assignment, macro, call_block,
               filter_block, scoped_block, loop_jump>
      node;
};

}  // namespace troupe::detail::jinja
