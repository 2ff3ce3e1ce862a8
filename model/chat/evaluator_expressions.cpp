#include "model/chat/evaluator.hpp"
#include "model/chat/evaluator_support.hpp"
#include "model/chat/printing.hpp"

namespace troupe::detail::jinja {
namespace {

template <class... Nodes>
bool is_one_of(const expression_node& node) {
  return (std::holds_alternative<Nodes>(node) || ...);
}

/// Whether what the node gives was there before.
bool only_picks(const expression_node& node) {
  return is_one_of<literal, name_reference, attribute_access, item_access, logical, choice>(node);
}

filter known(const filter_use& use) {
  if (!use.function) fail("there is no filter named '{}'", use.name);
  return use.function;
}
type_test known(const test_use& use) {
  if (!use.function) fail("there is no test named '{}'", use.name);
  return use.function;
}

}  // namespace

struct evaluator::expression_visitor {
  evaluator& self;

  value operator()(const literal& n) { return n.constant; }
  value operator()(const name_reference& n) { return self.lookup(n.name); }

  value operator()(const sequence_display& n) {
    std::vector<value> items;
    for (const expression_ptr& item : n.items) items.push_back(self.evaluate(*item));
    return make_sequence(n.kind, std::move(items));
  }

  value operator()(const mapping_display& n) {
    std::vector<std::pair<value, value>> entries;
    for (const auto& [key, item] : n.entries) {
      value name = self.evaluate(*key);
      set_entry(cost(), entries, std::move(name), self.evaluate(*item));
    }
    return make_mapping(std::move(entries));
  }

  value operator()(const attribute_access& n) { return attribute(cost(), self.evaluate(*n.object), n.name); }

  value operator()(const item_access& n) {
    const value object = self.evaluate(*n.object);
    return item(cost(), object, self.evaluate(*n.key));
  }

  value operator()(const slice_access& n) {
    const value object = self.evaluate(*n.object);
    const value start = self.evaluate_or_none(n.start);
    const value stop = self.evaluate_or_none(n.stop);
    cost().scan(object);
    return slice(object, start, stop, self.evaluate_or_none(n.step));
  }

  value operator()(const call& n) {
    const value callee = self.evaluate(*n.callee);
    return self.call_value(callee, self.evaluate(n.given));
  }

  value operator()(const filter_use& n) {
    value subject = self.evaluate(*n.subject);
    return known(n)(cost(), paid(subject), paid(self.evaluate(n.given)));
  }

  value operator()(const test_use& n) {
    const value subject = self.evaluate(*n.subject);
    return make_bool(known(n)(cost(), subject, paid(self.evaluate(n.given))));
  }

  value operator()(const arithmetic_use& n) {
    const value left = self.evaluate(*n.left);
    return compute(cost(), n.op, left, self.evaluate(*n.right));
  }

  value operator()(const concatenation& n) {
    text_builder joined(cost());
    for (const expression_ptr& part : n.parts) print(joined, self.evaluate(*part));
    return make_text(joined.take());
  }

  value operator()(const comparison_chain& n) {
    value left = self.evaluate(*n.first);
    for (const auto& [op, operand] : n.rest) {
      value right = self.evaluate(*operand);
      if (!compare(cost(), op, left, right)) return make_bool(false);
      left = std::move(right);
    }
    return make_bool(true);
  }

  value operator()(const logical& n) {
    value left = self.evaluate(*n.left);
    return truthy(left) == n.conjunction ? self.evaluate(*n.right) : left;
  }

  value operator()(const negation& n) { return make_bool(!truthy(self.evaluate(*n.operand))); }

  value operator()(const sign& n) {
    const value operand = self.evaluate(*n.operand);
    return n.negative ? negate(operand) : compute(cost(), arithmetic::add, make_integer(0), operand);
  }

  value operator()(const choice& n) {
    if (truthy(self.evaluate(*n.condition))) return self.evaluate(*n.then);
    if (n.otherwise) return self.evaluate(*n.otherwise);
    return make_undefined("the inline if has no else");
  }

  budget& cost() { return self.run_.cost; }
  const value& paid(const value& v) { return cost().scan(v), v; }
  arguments&& paid(arguments&& given) {
    for (const value& v : given.positional) cost().scan(v);
    return std::move(given);
  }
};

value evaluator::evaluate(const expression& e) {
  return located(e.at, [&] {
    const deeper level(*this);
    run_.cost.step();
    value result = std::visit(expression_visitor{*this}, e.node);
    if (!only_picks(e.node)) run_.cost.built(result);
    return result;
  });
}

value evaluator::evaluate_or_none(const expression_ptr& e) {
  return e ? evaluate(*e) : value{none{}};
}

arguments evaluator::evaluate(const call_arguments& given) {
  arguments evaluated;
  for (const expression_ptr& argument : given.positional) evaluated.positional.push_back(evaluate(*argument));
  if (given.unpacked) {
    const sequence_ptr further = iterate(run_.cost, evaluate(*given.unpacked));
    run_.cost.step(further->items.size());
    run_.cost.take(further->items.size() * sizeof(value));
    evaluated.positional.insert(evaluated.positional.end(), further->items.begin(), further->items.end());
  }
  for (const auto& [name, argument] : given.named) evaluated.named.emplace_back(name, evaluate(*argument));
  return evaluated;
}

value evaluator::descend(const loop_ptr& loop, arguments&& given) {
  if (!loop->descend) fail("a loop can only be called if its block is recursive: for … in … recursive");
  const loop_ptr held = loop;
  return held->descend(run_, std::move(given));
}

value evaluator::call_value(const value& callee, arguments&& given) {
  require_defined(callee);
  if (const loop_ptr* loop = callee.as<loop_ptr>()) return descend(*loop, std::move(given));
  const callable_ptr* function = callee.as<callable_ptr>();
  if (!function) fail("a {} cannot be called", type_name(callee));
  const callable_ptr held = *function;
  return held->call(run_, std::move(given));
}

value evaluator::filtered(const expression& use, value subject) {
  return located(use.at, [&] {
    const auto& applied = std::get<filter_use>(use.node);
    run_.cost.scan(subject);
    return known(applied)(run_.cost, subject, evaluate(applied.given));
  });
}

value evaluator::lookup(const std::string& name) {
  for (const scope* inside = scope_.get(); inside; inside = inside->outer.get()) {
    run_.cost.step(inside->names.size() / 16);
    if (const value* known = find_named(inside->names, name)) return *known;
  }
  return global_function(name);
}

}  // namespace troupe::detail::jinja
