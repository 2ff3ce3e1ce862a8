// What operators stand between: literals, names, displays, and what follows them: calls, attributes, filters, tests.
#include <cstdlib>

#include "model/chat/literals.hpp"
#include "model/chat/parser.hpp"

namespace troupe::detail::jinja {

expression_ptr parser::parse_primary() {
  if (at_symbol("[")) return parse_list();
  if (at_symbol("{")) return parse_dict();
  if (!skip_symbol("(")) return parse_literal_or_name(here());
  const position at = here().at;
  expression_ptr inside = at_symbol(")") ? make(at, sequence_display{sequence_kind::tuple, {}}) : parse_tuple(true);
  expect_symbol(")");
  return inside;
}

expression_ptr parser::parse_literal_or_name(const token& first) {
  if (first.kind == token_kind::integer || first.kind == token_kind::real) return parse_number(take());
  if (first.kind == token_kind::string) {
    std::string text = take().text;
    while (here().kind == token_kind::string) text += take().text;
    return make(first.at, literal{make_text(std::move(text))});
  }
  if (first.kind != token_kind::name) refuse_token("an expression");
  const std::string& name = take().text;
  if (name == "true" || name == "True") return make(first.at, literal{make_bool(true)});
  if (name == "false" || name == "False") return make(first.at, literal{make_bool(false)});
  if (name == "none" || name == "None") return make(first.at, literal{{none{}}});
  if (around_.inside && name == "caller") around_.inside->takes_caller = true;
  if (around_.inside && name == "varargs") around_.inside->takes_more_positional = true;
  if (around_.inside && name == "kwargs") around_.inside->takes_more_named = true;
  return make(first.at, name_reference{name});
}

expression_ptr parser::parse_number(const token& digits) {
  const std::string& text = digits.text;
  if (digits.kind == token_kind::real) return make(digits.at, literal{{std::strtod(text.c_str(), nullptr)}});
  const int base = prefixed_base(text);
  integer number = 0;
  for (const char c : text.substr(base == 10 ? 0 : 2)) {
    const int digit = digit_value(c);
    if (digit >= base || !append_digit(number, digit, base)) refuse_at(where_, digits.at, "the number cannot be read");
  }
  return make(digits.at, literal{make_integer(number)});
}

expression_ptr parser::parse_list() {
  const position at = here().at;
  sequence_display list{sequence_kind::list, {}};
  parse_items("[", "]", [&] { list.items.push_back(parse_expression()); });
  return make(at, std::move(list));
}

expression_ptr parser::parse_dict() {
  const position at = here().at;
  mapping_display dict;
  parse_items("{", "}", [&] {
    expression_ptr key = parse_expression();
    expect_symbol(":");
    dict.entries.emplace_back(std::move(key), parse_expression());
  });
  return make(at, std::move(dict));
}

expression_ptr parser::parse_postfix(expression_ptr object) {
  while (true) {
    const position at = here().at;
    if (at_symbol("(")) {
      object = make(at, call{std::move(object), parse_arguments()});
    } else if (skip_symbol(".")) {
      object = parse_attribute(std::move(object), at);
    } else if (skip_symbol("[")) {
      object = parse_subscript(std::move(object), at);
    } else {
      return object;
    }
  }
}

expression_ptr parser::parse_attribute(expression_ptr object, position at) {
  if (here().kind == token_kind::integer) return make(at, item_access{std::move(object), parse_number(take())});
  if (here().kind != token_kind::name) refuse_token("the name of an attribute");
  return make(at, attribute_access{std::move(object), take().text});
}

expression_ptr parser::parse_subscript(expression_ptr object, position at) {
  const auto part = [this] { return at_symbol(":") || at_symbol("]") ? nullptr : parse_expression(); };
  expression_ptr first = part();
  if (!at_symbol(":")) {
    if (!first) refuse_token("an index");
    expect_symbol("]");
    return make(at, item_access{std::move(object), std::move(first)});
  }
  slice_access picked{std::move(object), std::move(first), nullptr, nullptr};
  expect_symbol(":");
  picked.stop = part();
  if (skip_symbol(":")) picked.step = part();
  expect_symbol("]");
  return make(at, std::move(picked));
}

expression_ptr parser::parse_filters(expression_ptr subject) {
  while (true) {
    const position at = here().at;
    if (skip_symbol("|")) {
      subject = parse_filter(std::move(subject), at);
    } else if (skip_name("is")) {
      subject = parse_test(std::move(subject), at);
    } else if (at_symbol("(")) {
      subject = make(at, call{std::move(subject), parse_arguments()});
    } else {
      return subject;
    }
  }
}

expression_ptr parser::parse_filter(expression_ptr subject, position at) {
  const token& name = take_name();
  const filter function = find_filter(name.text);
  if (!function) unknown_.push_back({name.at, fmt::format("there is no filter named '{}'", name.text)});
  call_arguments given = at_symbol("(") ? parse_arguments() : call_arguments{};
  return make(at, filter_use{std::move(subject), function, std::move(given), name.text});
}

expression_ptr parser::parse_test(expression_ptr subject, position at) {
  const bool negated = skip_name("not");
  const token& name = take_name();
  const type_test function = find_test(name.text);
  if (!function) unknown_.push_back({name.at, fmt::format("there is no test named '{}'", name.text)});
  call_arguments given;
  if (at_symbol("(")) {
    given = parse_arguments();
  } else if (at_test_argument()) {
    given.positional.push_back(parse_postfix(parse_primary()));
  }
  expression_ptr test = make(at, test_use{std::move(subject), function, std::move(given), name.text});
  return negated ? make(at, negation{std::move(test)}) : std::move(test);
}

// "x is divisibleby 3": an argument without brackets.
bool parser::at_test_argument() const {
  switch (here().kind) {
    case token_kind::string:
    case token_kind::integer:
    case token_kind::real:
      return true;
    case token_kind::name:
      break;
    default:
      return at_symbol("[") || at_symbol("{");
  }
  if (at_name("is")) refuse_token("something other than a second test");
  return !at_name("else") && !at_name("or") && !at_name("and") && !at_name("if") && !at_name("in") && !at_name("not");
}

call_arguments parser::parse_arguments() {
  call_arguments given;
  parse_items("(", ")", [&] { parse_argument(given); });
  return given;
}

void parser::parse_argument(call_arguments& into) {
  if (at_symbol("**")) refuse_token("an argument; unpacking of named ones is not supported");
  if (!into.unpacked && skip_symbol("*")) {
    into.unpacked = parse_expression();
    return;
  }
  const bool named = here().kind == token_kind::name && ahead().kind == token_kind::symbol && ahead().text == "=";
  if (!named) {
    if (!into.named.empty()) refuse_token("only named arguments after a named one");
    if (into.unpacked) refuse_token("only named arguments after unpacked ones");
    into.positional.push_back(parse_expression());
    return;
  }
  std::string name = take().text;
  expect_symbol("=");
  into.named.emplace_back(std::move(name), parse_expression());
}

}  // namespace troupe::detail::jinja
