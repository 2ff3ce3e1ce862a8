// One constraint over one vocabulary: which tokens may come next. What was found out is kept, within bounds, for all
// answers under the constraint. What is allowed depends on the answer's text alone. Belongs to one thread.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/grammar/constraint.hpp"
#include "model/grammar/text_automaton.hpp"
#include "model/grammar/token_tree.hpp"

namespace troupe {

/// A bit for every token of the model.
using token_mask = std::vector<std::uint64_t>;

class token_constraint {
 public:
  using state = text_automaton::state;

  /// Throws input_error as compile does.
  token_constraint(const output_constraint& constraint, std::shared_ptr<const token_tree> tokens);

  state start() { return automaton_.start(); }
  state after(state from, token_id token);
  /// The text can end here.
  bool is_complete(state at) const { return automaton_.is_complete(at); }
  bool goes_on(state at) const { return automaton_.goes_on(at); }
  /// Tokens that may follow; stays until the next call. All zeros where none may.
  const token_mask& allowed(state& after);
  /// Changes when states are forgotten; an answer then finds its state again from its text.
  std::uint64_t generation() const { return automaton_.generation(); }
  /// All that was found out: it is found again where it is needed.
  void forget() { keep_only({}); }
  /// Of memory, about.
  std::size_t size() const {
    return lasting_size() + automaton_.size() + walked_bytes() + masks_.size() * (mask_words_ * 8 + 64);
  }
  /// Of it, what is not forgotten: the constraint itself.
  std::size_t lasting_size() const { return text_bytes_ + automaton_.grammar().size(); }

 private:
  std::size_t walked_bytes() const { return walked_.size() * sizeof(walked_.front()); }
  void keep_only(std::span<state> kept);
  void allow(token_mask& mask, const token_tree::node& node) const;
  token_mask find_allowed(state from);
  token_mask find_allowed_bytes(state from);
  bool is_new_in_walk(std::size_t step);

  std::shared_ptr<const token_tree> tokens_;
  text_automaton automaton_;
  std::size_t text_bytes_;
  std::size_t mask_words_;
  std::unordered_map<state, token_mask> masks_;  ///< by short-sighted state
  std::unordered_map<state, state> short_sighted_;
  const token_mask nothing_;  ///< may follow
  std::vector<state> path_;
  std::vector<std::uint32_t> walked_;  ///< by step of the automaton: the last walk that took it
  std::uint32_t walk_ = 0;
};

/// The constraints in use, each made once; those used last are kept for the next answer. Belongs to one thread.
class constraint_store {
 public:
  explicit constraint_store(std::shared_ptr<const token_tree> tokens, std::size_t most_bytes = std::size_t{256} << 20)
      : tokens_(std::move(tokens)), most_bytes_(most_bytes) {}
  /// Throws input_error.
  std::shared_ptr<token_constraint> get(const output_constraint& wanted);
  /// Constraints grow while they are in use, so this is called in every step. Those that are not in use go first; then
  /// some of the others forget what they found out. They have a quarter of the bytes for that, however large they are.
  void keep_within_bounds();

 private:
  struct entry {
    output_constraint wanted;
    std::shared_ptr<token_constraint> constraint;
  };
  std::size_t sum(std::size_t (token_constraint::*size)() const) const;

  std::shared_ptr<const token_tree> tokens_;
  std::size_t most_bytes_;
  std::list<entry> kept_;  ///< the one asked for last is first
};

}  // namespace troupe
