#include "model/grammar/text_automaton.hpp"

#include <algorithm>
#include <utility>

#include "base/to_size.hpp"

namespace troupe {
namespace {

using kind = grammar_edge::kind;

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdu;
}

std::uint64_t pair_of(std::int32_t a, std::int32_t b) {
  return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
}

}  // namespace

/// Copies calls of `from` into the automaton, the calls that they lie in first, each once.
template <class Change>
class text_automaton::frame_copier {
 public:
  frame_copier(text_automaton& to, const std::vector<frame>& from, Change change)
      : to_(to), from_(from), change_(change) {}

  std::int32_t operator()(std::int32_t wanted) {
    for (; !copies_.contains(wanted); wanted = from_[to_size(wanted)].parent) inner_.push_back(wanted);
    std::int32_t copied = copies_.at(wanted);
    for (; !inner_.empty(); inner_.pop_back()) {
      frame copy = from_[to_size(inner_.back())];
      copy.parent = copied;
      change_(copy);
      copied = to_.frame_of(copy);
      copies_.emplace(inner_.back(), copied);
    }
    return copied;
  }

 private:
  text_automaton& to_;
  const std::vector<frame>& from_;
  Change change_;
  std::unordered_map<std::int32_t, std::int32_t> copies_{{no_frame, no_frame}};
  std::vector<std::int32_t> inner_;
};

std::size_t text_automaton::frame_hash::operator()(const frame& f) const {
  return mix(mix(17, pair_of(f.edge, f.parent)), pair_of(f.least, f.most));
}

text_automaton::text_automaton(std::shared_ptr<const byte_grammar> grammar) : grammar_(std::move(grammar)) {
  find_classes();
}

/// Bytes that no edge tells apart share a column of the table.
void text_automaton::find_classes() {
  bool begins[257] = {};
  for (const grammar_edge& edge : grammar_->edges)
    if (edge.reads == kind::bytes) begins[edge.low] = begins[edge.high + 1] = true;
  for (unsigned byte = 1; byte < 256; ++byte)
    if (grammar_->alphabet[byte] != grammar_->alphabet[byte - 1]) begins[byte] = true;
  std::uint16_t last = 0;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (byte > 0 && begins[byte]) ++last;
    class_of_[byte] = last;
  }
  classes_ = last + std::size_t{1};
}

text_automaton::state text_automaton::start() {
  reach(grammar_->rules[to_size(grammar_->root)].start, no_frame);
  return close();
}

text_automaton::state text_automaton::find_next(state from, std::uint8_t byte) {
  if (grammar_->alphabet[byte]) {
    const state_data data = states_[to_size(from)];
    for (std::uint32_t i = data.first; i < data.first + data.ways; ++i) {
      const way each = ways_[i];
      for (const grammar_edge& edge : grammar_->edges_of(each.place))
        if (edge.reads == kind::bytes && edge.low <= byte && byte <= edge.high) reach(edge.next, each.frame);
    }
  }
  const std::size_t step = step_of(from, byte);
  const state result = close();
  next_[step] = result;
  visits_[step] = static_cast<std::uint16_t>(std::min<std::size_t>(visited_, UINT16_MAX));
  return result;
}

/// Only places from which the text can still end within the limits count, so no state is a dead end.
void text_automaton::reach(std::int32_t place, std::int32_t frame) {
  const std::int32_t height = grammar_->height[to_size(place)];
  if (height == byte_grammar::unreachable || depth(frame) + height > byte_grammar::most_height) return;
  if (too_many_ || !seen_.insert(pair_of(place, frame)).second) return;
  too_many_ = seen_.size() > 4 * most_ways;
  open_.push_back({place, frame});
}

void text_automaton::follow(way from) {
  if (grammar_->is_final[to_size(from.place)]) return leave(from.frame);
  bool reads = false;
  const auto first = grammar_->first_edge[to_size(from.place)];
  const auto last = grammar_->first_edge[to_size(from.place) + 1];
  for (auto e = first; e < last; ++e) {
    const grammar_edge& edge = grammar_->edges[e];
    if (edge.reads == kind::bytes)
      reads = reads || grammar_->height[to_size(edge.next)] != byte_grammar::unreachable;
    else if (edge.reads == kind::nothing)
      reach(edge.next, from.frame);
    else
      enter(static_cast<std::int32_t>(e), edge.least, edge.most, from.frame);
  }
  if (reads) found_.push_back(from);
}

/// Reads the rule of a call `least` to `most` times more, then goes on behind it.
void text_automaton::enter(std::int32_t edge, std::int32_t least, std::int32_t most, std::int32_t parent) {
  const grammar_edge& call = grammar_->edges[to_size(edge)];
  if (least == 0) reach(call.next, parent);
  const std::int32_t behind = grammar_->height[to_size(call.next)];
  if (most == 0 || behind == byte_grammar::unreachable || depth(parent) + behind > byte_grammar::most_height) return;
  const std::int32_t begin = grammar_->rule_of(call).start;
  if (begin < 0) return;
  if (most == 1 && grammar_->is_last[to_size(call.next)]) return reach(begin, parent);
  if (depth(parent) >= byte_grammar::most_height) return;
  reach(begin, frame_of({edge, std::max(least - 1, 0), most < 0 ? most : most - 1, parent}));
}

void text_automaton::leave(std::int32_t frame) {
  if (frame == no_frame) {
    complete_ = true;
    return;
  }
  const auto call = frames_[to_size(frame)];
  if (call.most == 0) return reach(grammar_->edges[to_size(call.edge)].next, call.parent);
  enter(call.edge, call.least, call.most, call.parent);
}

std::int32_t text_automaton::frame_of(const frame& wanted) {
  const auto [place, is_new] = by_frame_.try_emplace(wanted, static_cast<std::int32_t>(frames_.size()));
  if (is_new) {
    frames_.push_back(wanted);
    depths_.push_back(depth(wanted.parent) + 1);
  }
  return place->second;
}

/// Follows what was reached until only places that read a byte are left: the ways of a state.
text_automaton::state text_automaton::close() {
  while (!open_.empty()) {
    const way next = open_.back();
    open_.pop_back();
    follow(next);
  }
  const state result = found_.size() > most_ways || too_many_ || (found_.empty() && !complete_) ? dead : intern();
  visited_ = seen_.size();
  found_.clear();
  seen_.clear();
  complete_ = too_many_ = false;
  return result;
}

text_automaton::state text_automaton::intern() {
  std::sort(found_.begin(), found_.end());
  std::uint64_t hash = complete_;
  for (const way& each : found_) hash = mix(hash, pair_of(each.place, each.frame));
  const auto [from, to] = by_content_.equal_range(hash);
  for (auto alike = from; alike != to; ++alike) {
    const state_data& data = states_[to_size(alike->second)];
    const auto ways = std::span(ways_).subspan(data.first, data.ways);
    if (data.complete == complete_ && std::equal(ways.begin(), ways.end(), found_.begin(), found_.end()))
      return alike->second;
  }
  const auto result = static_cast<state>(states_.size());
  states_.push_back({static_cast<std::uint32_t>(ways_.size()), static_cast<std::uint32_t>(found_.size()), complete_});
  ways_.insert(ways_.end(), found_.begin(), found_.end());
  next_.resize(next_.size() + classes_, unknown);
  visits_.resize(next_.size());
  by_content_.emplace(hash, result);
  return result;
}

text_automaton::state text_automaton::short_sighted(state from, std::int32_t bytes) {
  if (from < 0) return from;
  const state_data data = states_[to_size(from)];
  frame_copier shortened(*this, frames_, [bytes](frame& call) {
    // Each time reads a byte at least, and one is read already.
    call.least = std::min(call.least, bytes);
    if (call.most > bytes && call.least < call.most) call.most = -1;
  });
  bool changed = false;
  for (std::uint32_t i = data.first; i < data.first + data.ways; ++i) {
    const way each = ways_[i];
    found_.push_back({each.place, shortened(each.frame)});
    changed |= found_.back().frame != each.frame;
  }
  complete_ = data.complete;
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  const state result = changed ? intern() : from;
  found_.clear();
  complete_ = false;
  return result;
}

std::size_t text_automaton::size() const {
  return states_.size() * (sizeof(state_data) + 48 + classes_ * (sizeof(next_[0]) + sizeof(visits_[0]))) +
         ways_.size() * sizeof(way) + frames_.size() * (2 * sizeof(frame) + 40);
}

void text_automaton::keep_only(std::span<state> kept) {
  ++generation_;
  const auto states = std::exchange(states_, {});
  const auto ways = std::exchange(ways_, {});
  const auto frames = std::exchange(frames_, {});
  next_ = {};
  visits_ = {};
  by_content_.clear();
  depths_.clear();
  by_frame_.clear();
  frame_copier kept_frame(*this, frames, [](frame&) {});
  for (state& each : kept) {
    if (each < 0) continue;
    const state_data& data = states[to_size(each)];
    for (std::uint32_t i = data.first; i < data.first + data.ways; ++i)
      found_.push_back({ways[i].place, kept_frame(ways[i].frame)});
    complete_ = data.complete;
    each = intern();
    found_.clear();
    complete_ = false;
  }
}

}  // namespace troupe
