#include "model/grammar/token_constraint.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_state_bytes = std::size_t{48} << 20;
constexpr std::size_t most_mask_bytes = std::size_t{16} << 20;
constexpr std::size_t most_kept = 64;
/// What one mask may cost where nothing is known yet: the distinct steps, the ways of all states that they lead to, an
/// eighth of those that they lead from, and a sixteenth of the places looked at in between. Beyond it only tokens of
/// one byte are looked at. Some milliseconds.
constexpr std::size_t most_ways_each = std::size_t{1} << 16;

}  // namespace

token_constraint::token_constraint(const output_constraint& constraint, std::shared_ptr<const token_tree> tokens)
    : tokens_(std::move(tokens)),
      automaton_(compile(constraint, tokens_->alphabet())),
      text_bytes_(constraint.bytes()),
      mask_words_(ceil_div(to_size(tokens_->vocab_size()), 64)),
      nothing_(mask_words_),
      path_(to_size(tokens_->longest()) + 1) {}

token_constraint::state token_constraint::after(state from, token_id token) {
  for (const char byte : tokens_->bytes_of(token)) from = automaton_.next(from, static_cast<std::uint8_t>(byte));
  return from;
}

const token_mask& token_constraint::allowed(state& after) {
  if (after < 0) return nothing_;
  if (automaton_.size() + walked_bytes() > most_state_bytes) keep_only(std::span(&after, 1));
  const auto [near, is_new] = short_sighted_.try_emplace(after, after);
  if (is_new) near->second = automaton_.short_sighted(after, tokens_->longest());
  const state from = near->second;
  if (const auto known = masks_.find(from); known != masks_.end()) return known->second;
  if (masks_.size() * mask_words_ * 8 > most_mask_bytes) masks_.clear();
  return masks_[from] = find_allowed(from);
}

void token_constraint::keep_only(std::span<state> kept) {
  automaton_.keep_only(kept);
  masks_.clear();
  short_sighted_.clear();
  walked_ = {};
}

void token_constraint::allow(token_mask& mask, const token_tree::node& node) const {
  for (const token_id token : tokens_->tokens_of(node)) mask[to_size(token) / 64] |= std::uint64_t{1} << (token % 64);
}

/// One walk over all tokens, leaving out what lies below a dead state. What counts against its limits depends on the
/// text and the vocabulary alone, never on what happens to be known already.
token_mask token_constraint::find_allowed(state from) {
  token_mask mask(mask_words_);
  const auto nodes = tokens_->nodes();
  std::size_t ways = 0;
  ++walk_;
  path_[0] = from;
  for (std::size_t i = 0; i < nodes.size();) {
    const token_tree::node& node = nodes[i];
    const state before = path_[node.depth - 1u], next = automaton_.next(before, node.byte);
    path_[node.depth] = next;
    if (const std::size_t step = automaton_.step_of(before, node.byte); is_new_in_walk(step))
      ways += 1 + automaton_.ways(before) / 8 + automaton_.visits(step) / 16 + automaton_.ways(next);
    if (ways > most_ways_each) return find_allowed_bytes(from);
    if (next < 0) {
      i = node.behind;
      continue;
    }
    allow(mask, node);
    ++i;
  }
  return mask;
}

/// Each byte that a text may have is a token, so the answer can go on.
token_mask token_constraint::find_allowed_bytes(state from) {
  token_mask mask(mask_words_);
  const auto nodes = tokens_->nodes();
  for (std::size_t i = 0; i < nodes.size(); i = nodes[i].behind)
    if (automaton_.next(from, nodes[i].byte) >= 0) allow(mask, nodes[i]);
  return mask;
}

bool token_constraint::is_new_in_walk(std::size_t step) {
  if (step >= walked_.size()) walked_.resize(step + step / 2 + 64);
  return std::exchange(walked_[step], walk_) != walk_;
}

std::shared_ptr<token_constraint> constraint_store::get(const output_constraint& wanted) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const entry& each) { return each.wanted == wanted; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->constraint;
  }
  if (!tokens_) refuse("the model has no tokenizer: answers cannot be constrained");
  const auto constraint = std::make_shared<token_constraint>(wanted, tokens_);
  kept_.push_front({wanted, constraint});
  keep_within_bounds();
  return constraint;
}

std::size_t constraint_store::sum(std::size_t (token_constraint::*size)() const) const {
  std::size_t bytes = 0;
  for (const entry& each : kept_) bytes += (*each.constraint.*size)();
  return bytes;
}

void constraint_store::keep_within_bounds() {
  std::size_t bytes = sum(&token_constraint::size);
  for (auto each = kept_.end(); each != kept_.begin() && (bytes > most_bytes_ || kept_.size() > most_kept);) {
    --each;
    if (each->constraint.use_count() > 1) continue;
    bytes -= each->constraint->size();
    each = kept_.erase(each);
  }
  const std::size_t most = std::max(most_bytes_, sum(&token_constraint::lasting_size) + most_bytes_ / 4);
  for (std::size_t left = kept_.size(); left > 0 && bytes > most; --left) {
    token_constraint& last = *kept_.back().constraint;
    bytes -= last.size();
    last.forget();
    bytes += last.size();
    kept_.splice(kept_.begin(), kept_, std::prev(kept_.end()));  // the next time it is another one's turn
  }
}

}  // namespace troupe
