// Expressions of operators, from those that bind least to those that bind most.
#include <algorithm>

#include "model/chat/parser.hpp"

namespace troupe::detail::jinja {

expression_ptr parser::parse_choice(bool with_if) {
  const nested level(*this);
  const std::size_t unknown_before = unknown_.size();
  expression_ptr then = parse_or();
  while (with_if && at_name("if")) {
    const position at = take().at;
    expression_ptr condition = parse_or();
    expression_ptr otherwise = skip_name("else") ? parse_choice(true) : nullptr;
    then = make(at, choice{std::move(condition), std::move(then), std::move(otherwise)});
    unknown_.resize(unknown_before);
  }
  return then;
}

expression_ptr parser::parse_tuple(bool with_if) {
  const position at = here().at;
  expression_ptr first = parse_choice(with_if);
  if (!at_symbol(",")) return first;
  sequence_display tuple{sequence_kind::tuple, {}};
  tuple.items.push_back(std::move(first));
  while (skip_symbol(",")) {
    const token_kind kind = here().kind;
    if (kind == token_kind::print_end || kind == token_kind::tag_end || at_symbol(")")) break;
    tuple.items.push_back(parse_choice(with_if));
  }
  return make(at, std::move(tuple));
}

expression_ptr parser::parse_or() {
  return parse_logical("or", false, &parser::parse_and);
}

expression_ptr parser::parse_and() {
  return parse_logical("and", true, &parser::parse_not);
}

expression_ptr parser::parse_logical(std::string_view name, bool conjunction, operand_rule parse_operand) {
  expression_ptr left = (this->*parse_operand)();
  while (at_name(name)) {
    const position at = take().at;
    expression_ptr right = (this->*parse_operand)();
    left = make(at, logical{conjunction, std::move(left), std::move(right)});
  }
  return left;
}

expression_ptr parser::parse_not() {
  if (!at_name("not")) return parse_comparison();
  const nested level(*this);
  const position at = take().at;
  return make(at, negation{parse_not()});
}

expression_ptr parser::parse_comparison() {
  static constexpr std::pair<std::string_view, comparison> symbols[] = {
      {"==", comparison::equal},      {"!=", comparison::not_equal}, {"<", comparison::less},
      {"<=", comparison::less_equal}, {">", comparison::greater},    {">=", comparison::greater_equal}};
  const position at = here().at;
  expression_ptr first = parse_sum();
  comparison_chain chain;
  while (true) {
    const auto* symbol =
        std::find_if(std::begin(symbols), std::end(symbols), [&](const auto& entry) { return at_symbol(entry.first); });
    if (symbol != std::end(symbols)) {
      take();
      chain.rest.emplace_back(symbol->second, parse_sum());
    } else if (skip_name("in")) {
      chain.rest.emplace_back(comparison::in, parse_sum());
    } else if (at_name("not") && ahead().kind == token_kind::name && ahead().text == "in") {
      next_ += 2;
      chain.rest.emplace_back(comparison::not_in, parse_sum());
    } else {
      break;
    }
  }
  if (chain.rest.empty()) return first;
  chain.first = std::move(first);
  return make(at, std::move(chain));
}

expression_ptr parser::parse_sum() {
  static constexpr operator_symbol symbols[] = {{"+", arithmetic::add}, {"-", arithmetic::subtract}};
  return parse_arithmetic(symbols, &parser::parse_concatenation);
}

expression_ptr parser::parse_concatenation() {
  const position at = here().at;
  expression_ptr first = parse_product();
  if (!at_symbol("~")) return first;
  concatenation joined;
  joined.parts.push_back(std::move(first));
  while (skip_symbol("~")) joined.parts.push_back(parse_product());
  return make(at, std::move(joined));
}

expression_ptr parser::parse_product() {
  static constexpr operator_symbol symbols[] = {{"*", arithmetic::multiply},
                                                {"/", arithmetic::divide},
                                                {"//", arithmetic::floor_divide},
                                                {"%", arithmetic::modulo}};
  return parse_arithmetic(symbols, &parser::parse_power);
}

expression_ptr parser::parse_power() {
  static constexpr operator_symbol symbols[] = {{"**", arithmetic::power}};
  return parse_arithmetic(symbols, &parser::parse_filtered);
}

expression_ptr parser::parse_arithmetic(std::span<const operator_symbol> symbols, operand_rule parse_operand) {
  expression_ptr left = (this->*parse_operand)();
  while (true) {
    const auto symbol =
        std::find_if(symbols.begin(), symbols.end(), [this](const auto& entry) { return at_symbol(entry.first); });
    if (symbol == symbols.end()) return left;
    const position at = take().at;
    expression_ptr right = (this->*parse_operand)();
    left = make(at, arithmetic_use{symbol->second, std::move(left), std::move(right)});
  }
}

expression_ptr parser::parse_unary(bool with_filters) {
  const nested level(*this);
  expression_ptr operand;
  if (at_symbol("-") || at_symbol("+")) {
    const token& symbol = take();
    const position at = symbol.at;
    const bool negative = symbol.text == "-";
    operand = make(at, sign{negative, parse_unary(false)});
  } else {
    operand = parse_primary();
  }
  operand = parse_postfix(std::move(operand));
  return with_filters ? parse_filters(std::move(operand)) : std::move(operand);
}

}  // namespace troupe::detail::jinja
