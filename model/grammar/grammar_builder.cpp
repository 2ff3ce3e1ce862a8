#include <algorithm>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/grammar/byte_grammar.hpp"

namespace troupe {
namespace {

using kind = grammar_edge::kind;

constexpr std::size_t most_states = 200'000;
constexpr std::size_t most_edges = 800'000;

}  // namespace

std::int32_t grammar_builder::state() {
  if (states_.size() >= most_states) refuse("the constraint is too large: it has more than {} states", most_states);
  states_.emplace_back();
  return static_cast<std::int32_t>(states_.size()) - 1;
}

void grammar_builder::add(std::int32_t from, const grammar_edge& edge) {
  if (++edges_ > most_edges) refuse("the constraint is too large: it has more than {} edges", most_edges);
  states_[to_size(from)].push_back(edge);
}

void grammar_builder::join(std::int32_t from, std::int32_t to) {
  add(from, {.next = to});
}

void grammar_builder::join_by_bytes(std::int32_t from, std::uint8_t low, std::uint8_t high, std::int32_t to) {
  add(from, {.reads = kind::bytes, .low = low, .high = high, .next = to});
}

void grammar_builder::join(std::int32_t from, piece through, std::int32_t to) {
  join(from, through.from);
  join(through.to, to);
}

grammar_builder::piece grammar_builder::nothing() {
  const std::int32_t only = state();
  return {only, only};
}

grammar_builder::piece grammar_builder::text(std::string_view bytes) {
  piece result = nothing();
  for (const char each : bytes) {
    const std::int32_t next = state();
    const auto byte = static_cast<std::uint8_t>(each);
    join_by_bytes(result.to, byte, byte, next);
    result.to = next;
  }
  return result;
}

grammar_builder::piece grammar_builder::bytes(std::uint8_t low, std::uint8_t high) {
  const piece result{state(), state()};
  join_by_bytes(result.from, low, high, result.to);
  return result;
}

grammar_builder::piece grammar_builder::one_of_bytes(const byte_set& bytes) {
  const piece result{state(), state()};
  for (unsigned low = 0; low < 256; ++low) {
    if (!bytes[low]) continue;
    unsigned high = low;
    while (high < 255 && bytes[high + 1]) ++high;
    join_by_bytes(result.from, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high), result.to);
    low = high;
  }
  return result;
}

grammar_builder::piece grammar_builder::one_of_texts(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  std::vector<path> paths;
  for (const std::string& each : texts)
    for (path& made = paths.emplace_back(); const char letter : each)
      made.push_back({static_cast<std::uint8_t>(letter), static_cast<std::uint8_t>(letter)});
  return one_of_paths(paths);
}

grammar_builder::piece grammar_builder::one_of_paths(std::span<const path> paths) {
  const piece result{state(), state()};
  std::vector<std::int32_t> behind{result.from};  // states behind each byte of the path before
  path before;
  for (const path& each : paths) {
    const auto differ = std::mismatch(each.begin(), each.end(), before.begin(), before.end()).first;
    behind.resize(to_size(differ - each.begin()) + 1);
    for (const auto& [low, high] : std::span(differ, each.end())) {
      const std::int32_t next = state();
      join_by_bytes(behind.back(), low, high, next);
      behind.push_back(next);
    }
    join(behind.back(), result.to);
    before = each;
  }
  return result;
}

grammar_builder::piece grammar_builder::call(rule_id rule) {
  return calls(rule, 1, 1);
}

grammar_builder::piece grammar_builder::calls(rule_id rule, std::int32_t least, std::int32_t most) {
  if (most == 0) return nothing();
  const piece result{state(), state()};
  add(result.from, {.reads = kind::call, .rule = rule, .least = least, .most = most, .next = result.to});
  return result;
}

grammar_builder::piece grammar_builder::sequence(std::span<const piece> parts) {
  if (parts.empty()) return nothing();
  for (std::size_t i = 1; i < parts.size(); ++i) join(parts[i - 1].to, parts[i].from);
  return {parts.front().from, parts.back().to};
}

grammar_builder::piece grammar_builder::any_of(std::span<const piece> parts) {
  if (parts.size() == 1) return parts.front();
  const piece result{state(), state()};
  for (const piece& each : parts) join(result.from, each, result.to);
  return result;
}

grammar_builder::piece grammar_builder::optional(piece part) {
  const piece result{state(), state()};
  join(result.from, part, result.to);
  join(result.from, result.to);
  return result;
}

grammar_builder::piece grammar_builder::repeat(piece part, std::int32_t least, std::int32_t most) {
  if (least == 1 && most == 1) return part;
  if (least == 0 && most == 1) return optional(part);
  if (most != any_number || least > 1) return calls(rule(part), least, most);
  const piece result{state(), state()};
  join(result.from, part, result.to);
  join(part.to, part.from);
  if (least == 0) join(result.from, result.to);
  return result;
}

grammar_builder::rule_id grammar_builder::declare() {
  rules_.emplace_back();
  return static_cast<rule_id>(rules_.size()) - 1;
}

void grammar_builder::define(rule_id rule, piece part) {
  const std::int32_t final = state();
  join(part.to, final);
  rules_[to_size(rule)] = {part.from, final};
}

grammar_builder::rule_id grammar_builder::rule(piece part) {
  const rule_id result = declare();
  define(result, part);
  return result;
}

byte_grammar grammar_builder::finish(rule_id root, const byte_set& alphabet, std::string_view name) {
  byte_grammar result;
  result.alphabet = alphabet;
  result.root = root;
  result.edges.reserve(edges_);
  result.first_edge.reserve(states_.size() + 1);
  for (auto& edges : states_) {
    result.first_edge.push_back(static_cast<std::uint32_t>(result.edges.size()));
    result.edges.insert(result.edges.end(), edges.begin(), edges.end());
    edges = {};
  }
  result.first_edge.push_back(static_cast<std::uint32_t>(result.edges.size()));
  result.rules = std::move(rules_);
  result.measure();
  const std::int32_t start = result.rules[to_size(root)].start;
  if (start < 0 || result.height[to_size(start)] == byte_grammar::unreachable)
    refuse("{}: nothing can satisfy it: loosen it", name);
  return result;
}

}  // namespace troupe
