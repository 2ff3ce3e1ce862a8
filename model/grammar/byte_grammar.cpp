#include "model/grammar/byte_grammar.hpp"

#include <algorithm>

#include "base/to_size.hpp"

namespace troupe {
namespace {

using kind = grammar_edge::kind;

/// Finds for every state how deep calls must nest until its rule ends, the least deep states first.
class height_finder {
 public:
  explicit height_finder(byte_grammar& grammar)
      : grammar_(grammar), into_(grammar.height.size()), levels_(byte_grammar::most_height + 1) {}

  void find() {
    list_sources();
    for (std::size_t i = 0; i < grammar_.is_final.size(); ++i)
      if (grammar_.is_final[i]) offer(static_cast<std::int32_t>(i), 0);
    for (std::int32_t level = 0; level <= byte_grammar::most_height; ++level) {
      auto& states = levels_[to_size(level)];
      for (std::size_t i = 0; i < states.size(); ++i) settle(states[i], level);
    }
  }

 private:
  struct source {
    std::int32_t state;
    std::uint32_t edge;
  };

  /// A state is settled with the edges that lead to it, and a rule's start with the calls of the rule.
  void list_sources() {
    for (std::int32_t from = 0; from < static_cast<std::int32_t>(into_.size()); ++from)
      for (std::uint32_t e = grammar_.first_edge[to_size(from)]; e < grammar_.first_edge[to_size(from) + 1]; ++e) {
        const grammar_edge& edge = grammar_.edges[e];
        into_[to_size(edge.next)].push_back({from, e});
        if (edge.reads != kind::call || edge.least == 0) continue;
        const std::int32_t start = grammar_.rule_of(edge).start;
        if (start >= 0 && start != edge.next) into_[to_size(start)].push_back({from, e});
      }
  }

  std::int32_t height(std::int32_t state) const { return grammar_.height[to_size(state)]; }

  void offer(std::int32_t state, std::int32_t level) {
    if (height(state) == byte_grammar::unreachable && level <= byte_grammar::most_height)
      levels_[to_size(level)].push_back(state);
  }

  void settle(std::int32_t state, std::int32_t level) {
    if (height(state) != byte_grammar::unreachable) return;
    grammar_.height[to_size(state)] = level;
    for (const source& each : into_[to_size(state)]) {
      const grammar_edge& edge = grammar_.edges[each.edge];
      if (height(edge.next) == byte_grammar::unreachable) continue;
      if (edge.reads == kind::bytes && !can_write(edge)) continue;
      if (edge.reads != kind::call || edge.least == 0) {
        offer(each.state, height(edge.next));
        continue;
      }
      const std::int32_t called = height(grammar_.rule_of(edge).start);
      if (called != byte_grammar::unreachable) offer(each.state, std::max(called + 1, height(edge.next)));
    }
  }

  bool can_write(const grammar_edge& edge) const {
    for (unsigned byte = edge.low; byte <= edge.high; ++byte)
      if (grammar_.alphabet[byte]) return true;
    return false;
  }

  byte_grammar& grammar_;
  std::vector<std::vector<source>> into_;
  std::vector<std::vector<std::int32_t>> levels_;
};

/// Edges of nothing alone, one after another, to a final state.
void mark_last(byte_grammar& grammar) {
  for (std::size_t i = 0; i < grammar.is_last.size(); ++i) {
    auto at = static_cast<std::int32_t>(i);
    for (int steps = 0; steps < 16 && !grammar.is_final[to_size(at)]; ++steps) {
      const auto edges = grammar.edges_of(at);
      if (edges.size() != 1 || edges[0].reads != kind::nothing) break;
      at = edges[0].next;
    }
    grammar.is_last[i] = grammar.is_final[to_size(at)];
  }
}

}  // namespace

void byte_grammar::measure() {
  const std::size_t states = first_edge.size() - 1;
  height.assign(states, unreachable);
  is_final.assign(states, false);
  is_last.assign(states, false);
  for (const rule& each : rules)
    if (each.final >= 0) is_final[to_size(each.final)] = true;
  height_finder(*this).find();
  mark_last(*this);
}

}  // namespace troupe
