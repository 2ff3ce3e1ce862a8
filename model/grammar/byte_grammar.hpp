// What an answer may be, as rules over bytes: every rule a small automaton whose edges read a byte, nothing, or what
// another rule allows. All kinds of constraints become one of these; text_automaton runs it.
#pragma once
#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/to_size.hpp"

namespace troupe {

/// What texts from outside may ask of a grammar: groups within groups, and repetitions.
constexpr int most_nesting = 64;
constexpr std::int32_t most_repetitions = 10'000;

using byte_set = std::bitset<256>;

struct grammar_edge {
  enum class kind : std::uint8_t { nothing, bytes, call };
  kind reads = kind::nothing;
  std::uint8_t low = 0, high = 0;    ///< of bytes, both included
  std::int32_t rule = -1;            ///< of a call
  std::int32_t least = 1, most = 1;  ///< calls, one after another; most -1: any number
  std::int32_t next = -1;
};

/// Immutable once measured. States are numbered through all rules; a rule ends where it comes to its `final` state.
struct byte_grammar {
  /// A text may nest so many calls; the others cannot be written.
  static constexpr std::int32_t most_height = 256;
  static constexpr std::int32_t unreachable = -1;

  struct rule {
    std::int32_t start = -1, final = -1;
  };
  std::vector<std::uint32_t> first_edge;  // [states + 1]
  std::vector<grammar_edge> edges;
  std::vector<rule> rules;
  std::vector<std::int32_t> height;  ///< of each state: calls that must nest to come to its rule's end; or unreachable
  std::vector<bool> is_final;        ///< of each state
  std::vector<bool> is_last;         ///< of each state: only nothing is read until the rule's end
  byte_set alphabet;                 ///< bytes that can be written at all
  std::int32_t root = 0;

  std::span<const grammar_edge> edges_of(std::int32_t state) const {
    const auto i = to_size(state);
    return std::span(edges).subspan(first_edge[i], first_edge[i + 1] - first_edge[i]);
  }
  const rule& rule_of(const grammar_edge& call) const { return rules[to_size(call.rule)]; }
  /// Of memory, about.
  std::size_t size() const {
    return edges.size() * sizeof(grammar_edge) + rules.size() * sizeof(rule) +
           height.size() * (sizeof(first_edge[0]) + sizeof(height[0]) + 1);
  }
  /// Finds out what is known of each state, from edges, rules and alphabet.
  void measure();
};

/// Puts a grammar together from pieces. A piece belongs to one place: what is needed twice is a rule that is called
/// twice. Throws input_error where the grammar grows beyond its limits.
class grammar_builder {
 public:
  using rule_id = std::int32_t;
  struct piece {
    std::int32_t from, to;
  };
  static constexpr std::int32_t any_number = -1;

  piece nothing();
  piece text(std::string_view bytes);
  piece bytes(std::uint8_t low, std::uint8_t high);
  piece one_of_bytes(const byte_set& bytes);
  /// One of some texts, read as a tree: beginnings that are equal are read once.
  piece one_of_texts(std::vector<std::string> texts);
  struct byte_range {
    std::uint8_t low, high;  ///< both included
    friend bool operator==(const byte_range&, const byte_range&) = default;
  };
  using path = std::vector<byte_range>;
  /// The same for bytes of ranges. Only neighbours share their beginnings, so the paths should come in order.
  piece one_of_paths(std::span<const path> paths);
  piece call(rule_id rule);
  piece calls(rule_id rule, std::int32_t least, std::int32_t most);
  piece sequence(std::initializer_list<piece> parts) { return sequence(std::span(parts.begin(), parts.size())); }
  piece sequence(std::span<const piece> parts);
  piece any_of(std::initializer_list<piece> parts) { return any_of(std::span(parts.begin(), parts.size())); }
  piece any_of(std::span<const piece> parts);  ///< none: what nothing satisfies
  piece optional(piece part);
  piece repeat(piece part, std::int32_t least, std::int32_t most);

  rule_id declare();
  void define(rule_id rule, piece part);
  rule_id rule(piece part);

  // By hand: states, and ways between them.
  std::int32_t state();
  void join(std::int32_t from, std::int32_t to);
  void join(std::int32_t from, piece through, std::int32_t to);
  void join_by_bytes(std::int32_t from, std::uint8_t low, std::uint8_t high, std::int32_t to);

  /// Throws input_error, which calls the grammar `name`, where no text of `alphabet` satisfies it.
  byte_grammar finish(rule_id root, const byte_set& alphabet, std::string_view name);

 private:
  void add(std::int32_t from, const grammar_edge& edge);

  std::vector<std::vector<grammar_edge>> states_;
  std::vector<byte_grammar::rule> rules_;
  std::size_t edges_ = 0;
};

}  // namespace troupe
