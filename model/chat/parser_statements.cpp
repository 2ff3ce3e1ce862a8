#include <algorithm>

#include "model/chat/parser.hpp"

namespace troupe::detail::jinja {

block parser::parse_template() {
  block body = parse_block({});
  if (here().kind != token_kind::end) refuse_token("the end of the template");
  if (!unknown_.empty()) refuse_at(where_, unknown_.front().first, unknown_.front().second);
  return body;
}

// Up to {% and one of the names in `ends`, which are left to the caller; without `ends` up to the end.
block parser::parse_block(std::initializer_list<std::string_view> ends) {
  const nested level(*this);
  block body;
  while (here().kind != token_kind::end) {
    const position at = here().at;
    if (here().kind == token_kind::text) {
      body.push_back(std::make_unique<const statement>(statement{at, text_output{take().text}}));
    } else if (here().kind == token_kind::print_begin) {
      take();
      expression_ptr shown = parse_tuple(true);
      if (here().kind != token_kind::print_end) refuse_token("}}");
      take();
      body.push_back(std::make_unique<const statement>(statement{at, print_output{std::move(shown)}}));
    } else {
      take();
      if (std::any_of(ends.begin(), ends.end(), [this](std::string_view end) { return at_name(end); })) return body;
      body.push_back(parse_tag());
    }
  }
  if (ends.size() > 0) refuse_token(fmt::format("{{% {} %}}", *(ends.end() - 1)));
  return body;
}

std::unique_ptr<const statement> parser::parse_tag() {
  const token& name = take_name();
  const auto done = [](statement parsed) { return std::make_unique<const statement>(std::move(parsed)); };
  if (name.text == "if") return done(parse_if(name.at));
  if (name.text == "for") return done(parse_for(name.at));
  if (name.text == "set") return done(parse_set(name.at));
  if (name.text == "macro") return done(parse_macro(name.at));
  if (name.text == "call") return done(parse_call_block(name.at));
  if (name.text == "filter") return done(parse_filter_block(name.at));
  if (name.text == "with") return done(parse_with(name.at));
  if (name.text == "generation") return done(parse_generation(name.at));
  if (name.text == "break") return done(parse_loop_jump(name.at, true));
  if (name.text == "continue") return done(parse_loop_jump(name.at, false));
  refuse_at(where_, name.at, fmt::format("the tag '{}' is unknown or out of place here", name.text));
}

statement parser::parse_if(position at) {
  conditional parsed;
  const std::size_t unknown_before = unknown_.size();
  do {
    expression_ptr condition = parse_tuple(false);
    end_tag();
    parsed.branches.emplace_back(std::move(condition), parse_block({"elif", "else", "endif"}));
  } while (skip_name("elif"));
  parsed.otherwise = parse_otherwise("endif");
  unknown_.resize(unknown_before);
  return {at, std::move(parsed)};
}

statement parser::parse_for(position at) {
  for_loop parsed;
  parsed.bound = parse_target(false);
  expect_name("in");
  parsed.iterable = parse_tuple(false);
  if (skip_name("if")) parsed.condition = parse_expression();
  parsed.recursive = skip_name("recursive");
  end_tag();
  const bool outer = std::exchange(around_.in_loop, true);
  parsed.body = parse_block({"else", "endfor"});
  // A recursive block's text is collected, so its else cannot leave the loop around it either.
  around_.in_loop = outer && !parsed.recursive;
  parsed.otherwise = parse_otherwise("endfor");
  around_.in_loop = outer;
  return {at, std::move(parsed)};
}

statement parser::parse_set(position at) {
  target bound = parse_target(true);
  if (skip_symbol("=")) {
    expression_ptr assigned = parse_tuple(true);
    end_tag();
    return {at, assignment{std::move(bound), std::move(assigned)}};
  }
  std::vector<expression_ptr> filters;
  if (skip_symbol("|")) filters = parse_filter_chain();
  end_tag();
  return {at, block_assignment{std::move(bound), std::move(filters), parse_body_of_its_own("endset", around_.inside)}};
}

statement parser::parse_macro(position at) {
  macro parsed;
  parsed.name = take_name().text;
  parse_parameters(parsed);
  end_tag();
  parsed.body = parse_body_of_its_own("endmacro", &parsed);
  return {at, std::move(parsed)};
}

statement parser::parse_call_block(position at) {
  call_block parsed;
  parsed.caller.name = "caller";
  if (at_symbol("(")) parse_parameters(parsed.caller);
  parsed.called = parse_expression();
  if (!std::holds_alternative<call>(parsed.called->node)) refuse_at(where_, at, "a call block needs a call");
  end_tag();
  parsed.caller.body = parse_body_of_its_own("endcall", &parsed.caller);
  return {at, std::move(parsed)};
}

statement parser::parse_filter_block(position at) {
  filter_block parsed;
  parsed.filters = parse_filter_chain();
  end_tag();
  parsed.body = parse_body_of_its_own("endfilter", around_.inside);
  return {at, std::move(parsed)};
}

statement parser::parse_with(position at) {
  scoped_block parsed;
  while (here().kind != token_kind::tag_end) {
    if (!parsed.bound.empty()) expect_symbol(",");
    target bound = parse_one_target(false);
    expect_symbol("=");
    parsed.bound.emplace_back(std::move(bound), parse_expression());
  }
  end_tag();
  parsed.body = parse_block({"endwith"});
  end_block("endwith");
  return {at, std::move(parsed)};
}

statement parser::parse_generation(position at) {
  end_tag();
  return {at, scoped_block{{}, parse_body_of_its_own("endgeneration", around_.inside)}};
}

statement parser::parse_loop_jump(position at, bool leaves) {
  if (!around_.in_loop) refuse_at(where_, at, leaves ? "break outside of a loop" : "continue outside of a loop");
  end_tag();
  return {at, loop_jump{leaves}};
}

// A body whose text is collected: no break can leave it.
block parser::parse_body_of_its_own(std::string_view end, macro* inside) {
  const surroundings outer = std::exchange(around_, surroundings{false, inside});
  block body = parse_block({end});
  around_ = outer;
  end_block(end);
  return body;
}

// The rest of a block that may have an else: empty where it has none.
block parser::parse_otherwise(std::string_view end) {
  block body;
  if (skip_name("else")) {
    end_tag();
    body = parse_block({end});
  }
  end_block(end);
  return body;
}

void parser::end_block(std::string_view end) {
  expect_name(end);
  end_tag();
}

std::vector<expression_ptr> parser::parse_filter_chain() {
  std::vector<expression_ptr> filters;
  do {
    filters.push_back(parse_filter(nullptr, here().at));
  } while (skip_symbol("|"));
  return filters;
}

target parser::parse_target(bool with_attributes) {
  const nested level(*this);
  target first = parse_one_target(with_attributes);
  if (!at_symbol(",")) return first;
  target all;
  all.several.push_back(std::move(first));
  while (skip_symbol(",")) {
    if (at_symbol("=") || at_symbol(")") || at_name("in")) break;
    all.several.push_back(parse_one_target(with_attributes));
  }
  return all;
}

target parser::parse_one_target(bool with_attributes) {
  if (skip_symbol("(")) {
    target inside = parse_target(with_attributes);
    expect_symbol(")");
    return inside;
  }
  const token& name = take_name();
  static constexpr std::string_view constants[] = {"true", "True", "false", "False", "none", "None"};
  if (std::find(std::begin(constants), std::end(constants), name.text) != std::end(constants)) {
    refuse_at(where_, name.at, fmt::format("'{}' cannot be assigned to", name.text));
  }
  target bound{name.text, "", {}};
  if (with_attributes && skip_symbol(".")) bound.attribute = take_name().text;
  return bound;
}

void parser::parse_parameters(macro& into) {
  parse_items("(", ")", [&] {
    const token& name = take_name();
    const bool has_default = skip_symbol("=");
    if (!has_default && !into.parameters.empty() && into.parameters.back().second) {
      refuse_at(where_, name.at, fmt::format("the parameter '{}' lacks a default, as one before it has", name.text));
    }
    into.parameters.emplace_back(name.text, has_default ? parse_expression() : nullptr);
  });
}

}  // namespace troupe::detail::jinja
