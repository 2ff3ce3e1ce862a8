#include "model/grammar/left_recursion.hpp"

#include <utility>

#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

using kind = grammar_edge::kind;
using rule_id = grammar_builder::rule_id;

class first_call_finder {
 public:
  explicit first_call_finder(const byte_grammar& grammar)
      : grammar_(grammar), empty_(grammar.height.size()), seen_(grammar.height.size()) {
    find_empty();
  }

  /// Rules that this one may call before it has read a byte. Is asked for each rule once.
  std::vector<rule_id> first_calls(rule_id rule) {
    std::vector<rule_id> called;
    std::vector<std::int32_t> open;
    const auto reach = [&](std::int32_t state) {
      if (state < 0 || seen_[to_size(state)]) return;
      seen_[to_size(state)] = true;
      open.push_back(state);
    };
    reach(grammar_.rules[to_size(rule)].start);
    while (!open.empty()) {
      const std::int32_t state = open.back();
      open.pop_back();
      for (const grammar_edge& edge : grammar_.edges_of(state)) {
        if (edge.reads == kind::call) called.push_back(edge.rule);
        if (edge.reads == kind::nothing || (edge.reads == kind::call && can_be_empty(edge))) reach(edge.next);
      }
    }
    return called;
  }

 private:
  bool is_empty(std::int32_t state) const { return state >= 0 && empty_[to_size(state)]; }
  bool can_be_empty(const grammar_edge& call) const {
    return call.least == 0 || is_empty(grammar_.rule_of(call).start);
  }

  /// States from which a rule's end can be reached without a byte, from the ends backwards.
  void find_empty() {
    std::vector<std::vector<std::pair<std::int32_t, const grammar_edge*>>> into(empty_.size());
    for (std::int32_t from = 0; from < static_cast<std::int32_t>(empty_.size()); ++from)
      for (const grammar_edge& edge : grammar_.edges_of(from)) {
        if (edge.reads == kind::bytes) continue;
        into[to_size(edge.next)].push_back({from, &edge});
        const std::int32_t start = edge.reads == kind::call ? grammar_.rule_of(edge).start : -1;
        if (start >= 0) into[to_size(start)].push_back({from, &edge});
      }
    std::vector<std::int32_t> open;
    const auto reach = [&](std::int32_t state) {
      if (empty_[to_size(state)]) return;
      empty_[to_size(state)] = true;
      open.push_back(state);
    };
    for (const auto& rule : grammar_.rules)
      if (rule.final >= 0) reach(rule.final);
    while (!open.empty()) {
      const std::int32_t state = open.back();
      open.pop_back();
      for (const auto& [from, edge] : into[to_size(state)])
        if (is_empty(edge->next) && (edge->reads == kind::nothing || can_be_empty(*edge))) reach(from);
    }
  }

  const byte_grammar& grammar_;
  std::vector<bool> empty_, seen_;
};

}  // namespace

std::optional<rule_id> rule_that_begins_with_itself(const byte_grammar& grammar) {
  first_call_finder finder(grammar);
  enum : char { unknown, in_path, done };
  std::vector<char> known(grammar.rules.size(), unknown);
  std::vector<std::pair<rule_id, std::vector<rule_id>>> path;  // with the calls that are left to look into
  const auto enter = [&](rule_id rule) {
    known[to_size(rule)] = in_path;
    path.push_back({rule, finder.first_calls(rule)});
  };
  for (std::size_t rule = 0; rule < known.size(); ++rule) {
    if (known[rule] == unknown) enter(static_cast<rule_id>(rule));
    while (!path.empty()) {
      auto& [here, left] = path.back();
      if (left.empty()) {
        known[to_size(here)] = done;
        path.pop_back();
        continue;
      }
      const rule_id next = left.back();
      left.pop_back();
      if (known[to_size(next)] == in_path) return next;
      if (known[to_size(next)] == unknown) enter(next);
    }
  }
  return std::nullopt;
}

}  // namespace troupe::detail
