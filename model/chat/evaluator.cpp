#include "model/chat/evaluator.hpp"

#include "model/chat/evaluator_support.hpp"
#include "model/chat/printing.hpp"

namespace troupe::detail::jinja {
struct evaluator::statement_visitor {
  evaluator& self;

  flow operator()(const text_output& n) { return self.write(n.text), flow::onward; }

  flow operator()(const print_output& n) {
    self.write(printed(self.run_.cost, self.evaluate(*n.shown)));
    return flow::onward;
  }

  flow operator()(const conditional& n) {
    for (const auto& [condition, body] : n.branches) {
      if (truthy(self.evaluate(*condition))) return self.execute(body);
    }
    return self.execute(n.otherwise);
  }

  flow operator()(const for_loop& n) {
    const value iterable = self.evaluate(*n.iterable);
    if (!n.recursive) return self.execute_loop(n, self.start_loop(n, iterable));
    self.write(self.recursive_level(n, iterable, 1));
    return flow::onward;
  }

  flow operator()(const assignment& n) {
    self.bind(n.bound, self.evaluate(*n.assigned));
    return flow::onward;
  }

  flow operator()(const block_assignment& n) {
    self.bind(n.bound, self.filtered_block(n.body, n.filters));
    return flow::onward;
  }

  flow operator()(const macro& n) {
    self.define(n.name, self.make_macro(n));
    return flow::onward;
  }

  flow operator()(const call_block& n) {
    const auto& called = std::get<call>(n.called->node);
    const value callee = self.evaluate(*called.callee);
    arguments given = self.evaluate(called.given);
    given.named.emplace_back("caller", self.make_macro(n.caller));
    self.write(printed(self.run_.cost, self.call_value(callee, std::move(given))));
    return flow::onward;
  }

  flow operator()(const filter_block& n) {
    self.write(printed(self.run_.cost, self.filtered_block(n.body, n.filters)));
    return flow::onward;
  }

  flow operator()(const scoped_block& n) {
    std::vector<value> values;
    for (const auto& [bound, assigned] : n.bound) values.push_back(self.evaluate(*assigned));
    return self.in_scope(self.scope_, [&] {
      for (std::size_t i = 0; i < values.size(); ++i) self.bind(n.bound[i].first, std::move(values[i]));
      return self.execute(n.body);
    });
  }

  flow operator()(const loop_jump& n) { return n.leaves ? flow::leave_loop : flow::next_round; }
};

evaluator::evaluator(const std::string& where, const render_options& options)
    : where_(where),
      run_{budget(options.limits),
           options.now.value_or(std::chrono::system_clock::now()),
           options.now.has_value(),
           {},
           {},
           {}},
      limits_(options.limits) {}

// Namespaces, macros and loops may refer to one another in cycles and long chains. Emptying them one by one, while all
// are still held here, frees them without leaks and without recursion.
evaluator::~evaluator() {
  for (const name_space_ptr& space : run_.spaces) space->attributes.clear();
  for (const scope_ptr& captured : run_.captured) captured->names.clear();
  for (const loop_ptr& loop : run_.watched) loop->last_seen.reset();
}

std::string evaluator::render(const block& body, std::vector<std::pair<std::string_view, value>> variables) {
  std::string text;
  out_ = &text;
  scope_ = std::make_shared<scope>(scope{nullptr, std::move(variables)});
  // A scope of the template's own, so that what it sets hides the variables.
  in_scope(scope_, [&] { return execute(body); });
  return text;
}

evaluator::flow evaluator::execute(const block& body) {
  for (const auto& s : body) {
    const flow next = execute(*s);
    if (next != flow::onward) return next;
  }
  return flow::onward;
}

evaluator::flow evaluator::execute(const statement& s) {
  return located(s.at, [&] {
    const deeper level(*this);
    run_.cost.step();
    return std::visit(statement_visitor{*this}, s.node);
  });
}

// As in the reference, the else branch runs if no round of the loop reached its end, even because of break.
evaluator::flow evaluator::execute_loop(const for_loop& loop, const std::shared_ptr<loop_state>& state) {
  if (execute_rounds(loop, state)) return flow::onward;
  return in_scope(scope_, [&] { return execute(loop.otherwise); });
}

bool evaluator::execute_rounds(const for_loop& loop, const std::shared_ptr<loop_state>& state) {
  bool any_finished = false;
  for (; state->index < state->items->items.size(); ++state->index) {
    run_.cost.step();
    const flow next = in_scope(scope_, [&] {
      define("loop", {loop_ptr(state)});
      bind(loop.bound, state->items->items[state->index]);
      return execute(loop.body);
    });
    any_finished |= next == flow::onward;
    if (next == flow::leave_loop) break;
  }
  return any_finished;
}

std::shared_ptr<loop_state> evaluator::start_loop(const for_loop& loop, const value& iterable) {
  auto state = std::make_shared<loop_state>();
  state->items = loop_items(loop, iterable);
  return state;
}

// What the block writes for `iterable`, and below that for what its body gives to loop().
std::string evaluator::recursive_level(const for_loop& loop, const value& iterable, std::size_t depth) {
  const std::shared_ptr<loop_state> state = start_loop(loop, iterable);
  state->depth = depth;
  state->descend = [this, &loop, around = scope_, depth](runtime&, arguments&& given) {
    const parameters p("loop", std::move(given), {"iterable"}, 1);
    return in_scope(around, [&] { return make_text(recursive_level(loop, p.at(0), depth + 1)); });
  };
  keep_scope();
  return captured([&] { execute_loop(loop, state); });
}

sequence_ptr evaluator::loop_items(const for_loop& loop, const value& iterable) {
  sequence_ptr all = iterate(run_.cost, iterable);
  if (!loop.condition) return all;
  std::vector<value> kept;
  for (const value& item : all->items)
    in_scope(scope_, [&] {
      bind(loop.bound, item);
      if (truthy(evaluate(*loop.condition))) kept.push_back(bound_value(loop.bound));
    });
  return *make_sequence(sequence_kind::list, std::move(kept)).as<sequence_ptr>();
}

// What the names of a loop that filters were bound to. The reference walks through that in place of the items, which
// previtem and nextitem show: several names are a tuple.
value evaluator::bound_value(const target& from) {
  if (from.several.empty()) return lookup(from.name);
  std::vector<value> parts;
  for (const target& each : from.several) parts.push_back(bound_value(each));
  value made = make_sequence(sequence_kind::tuple, std::move(parts));
  run_.cost.built(made);
  return made;
}

value evaluator::filtered_block(const block& body, const std::vector<expression_ptr>& filters) {
  value result = make_text(in_scope(scope_, [&] { return captured([&] { execute(body); }); }));
  for (const expression_ptr& use : filters) result = filtered(*use, std::move(result));
  return result;
}

void evaluator::bind(const target& to, value v) {
  if (to.several.empty())
    return to.attribute.empty() ? define(to.name, std::move(v)) : bind_attribute(to, std::move(v));
  const sequence_ptr parts = iterate(run_.cost, v);
  if (parts->items.size() != to.several.size()) {
    fail("{} values cannot be bound to {} names", parts->items.size(), to.several.size());
  }
  for (std::size_t i = 0; i < to.several.size(); ++i) bind(to.several[i], parts->items[i]);
}

void evaluator::bind_attribute(const target& to, value v) {
  const value owner = lookup(to.name);
  require_defined(owner);
  const name_space_ptr* space = owner.as<name_space_ptr>();
  if (!space) fail("only a namespace's attributes can be set; '{}' is a {}", to.name, type_name(owner));
  auto& attributes = (*space)->attributes;
  run_.cost.step(attributes.size() / 16);
  if (value* known = find_named(attributes, to.attribute))
    *known = std::move(v);
  else
    attributes.emplace_back(to.attribute, std::move(v));
}

void evaluator::define(std::string_view name, value v) {
  auto& names = scope_->names;
  run_.cost.step(names.size() / 16);
  if (value* known = find_named(names, name))
    *known = std::move(v);
  else
    names.emplace_back(name, std::move(v));
}

// For what outlives its block and refers to the names around it.
void evaluator::keep_scope() {
  constexpr std::size_t whole_scope = 512;
  run_.cost.take(whole_scope);
  run_.captured.push_back(scope_);
}

void evaluator::write(std::string_view text) {
  run_.cost.take(text.size());
  run_.cost.step(text.size() / 64);
  out_->append(text);
}

}  // namespace troupe::detail::jinja
