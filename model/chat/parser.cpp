#include "model/chat/parser.hpp"

#include <algorithm>

namespace troupe::detail::jinja {
namespace {

constexpr std::size_t deepest_nesting = 100;     // brackets and blocks inside one another
constexpr std::size_t deepest_expression = 200;  // operators inside one another, "a + b + c" included

// The deepest of a node's children.
struct child_depth {
  std::size_t deepest = 0;

  void operator()(const literal&) {}
  void operator()(const name_reference&) {}
  void operator()(const sequence_display& n) { see(n.items); }
  void operator()(const mapping_display& n) {
    for (const auto& [key, item] : n.entries) see(key), see(item);
  }
  void operator()(const attribute_access& n) { see(n.object); }
  void operator()(const item_access& n) { see(n.object), see(n.key); }
  void operator()(const slice_access& n) { see(n.object), see(n.start), see(n.stop), see(n.step); }
  void operator()(const call& n) { see(n.callee), see(n.given); }
  void operator()(const filter_use& n) { see(n.subject), see(n.given); }
  void operator()(const test_use& n) { see(n.subject), see(n.given); }
  void operator()(const arithmetic_use& n) { see(n.left), see(n.right); }
  void operator()(const concatenation& n) { see(n.parts); }
  void operator()(const comparison_chain& n) {
    see(n.first);
    for (const auto& [op, operand] : n.rest) see(operand);
  }
  void operator()(const logical& n) { see(n.left), see(n.right); }
  void operator()(const negation& n) { see(n.operand); }
  void operator()(const sign& n) { see(n.operand); }
  void operator()(const choice& n) { see(n.condition), see(n.then), see(n.otherwise); }

  void see(const expression_ptr& child) {
    if (child) deepest = std::max(deepest, child->depth);
  }
  void see(const std::vector<expression_ptr>& children) {
    for (const expression_ptr& child : children) see(child);
  }
  void see(const call_arguments& given) {
    see(given.positional);
    for (const auto& [name, child] : given.named) see(child);
    see(given.unpacked);
  }
};

}  // namespace

parser::nested::nested(parser& owner) : owner_(owner) {
  if (++owner_.depth_ > deepest_nesting) {
    --owner_.depth_;
    refuse_at(owner_.where_, owner_.here().at, fmt::format("more than {} levels of nesting", deepest_nesting));
  }
}

expression_ptr parser::make(position at, expression_node node) {
  child_depth children;
  std::visit(children, node);
  const std::size_t depth = children.deepest + 1;
  if (depth > deepest_expression) {
    refuse_at(where_, at, fmt::format("an expression of more than {} levels", deepest_expression));
  }
  return std::make_unique<const expression>(expression{at, depth, std::move(node)});
}

const token& parser::take() {
  const token& taken = tokens_[next_];
  if (next_ + 1 < tokens_.size()) ++next_;
  return taken;
}

bool parser::at_symbol(std::string_view symbol) const {
  return here().kind == token_kind::symbol && here().text == symbol;
}
bool parser::at_name(std::string_view name) const {
  return here().kind == token_kind::name && here().text == name;
}
bool parser::skip_symbol(std::string_view symbol) {
  return at_symbol(symbol) && (take(), true);
}
bool parser::skip_name(std::string_view name) {
  return at_name(name) && (take(), true);
}

void parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) refuse_token(fmt::format("'{}'", symbol));
}
void parser::expect_name(std::string_view name) {
  if (!skip_name(name)) refuse_token(fmt::format("'{}'", name));
}

const token& parser::take_name() {
  if (here().kind != token_kind::name) refuse_token("a name");
  return take();
}

void parser::end_tag() {
  if (here().kind != token_kind::tag_end) refuse_token("%}");
  take();
}

void parser::refuse_token(std::string_view expected) const {
  constexpr std::size_t longest_shown = 40;
  const bool is_long = here().kind == token_kind::text || here().text.size() > longest_shown;
  const std::string shown = here().kind == token_kind::end ? "the end of the template"
                            : is_long                      ? "text"
                                                           : fmt::format("'{}'", here().text);
  refuse_at(where_, here().at, fmt::format("expected {}, found {}", expected, shown));
}

}  // namespace troupe::detail::jinja
