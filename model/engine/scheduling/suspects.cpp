#include "model/engine/scheduling/suspects.hpp"

#include <algorithm>

namespace troupe::detail {

void suspects::set(scheduled_sequence& sequence, lost_steps lost) {
  count_ -= sequence.suspect();
  sequence.lost = lost;
  count_ += sequence.suspect();
}

void suspects::note_loss(scheduled_sequence& sequence, std::size_t from, std::size_t to) {
  const lost_steps& before = sequence.lost;
  // Nothing that it had not done before; but if it is lost here again, that counts, or there might be no end of it.
  if (to <= before.at) return set(sequence, {before.lives, from});
  set(sequence, {from > before.at ? 1 : before.lives + 1, std::max(from, before.at)});
}

void suspects::part(std::vector<scheduled_sequence*>& sequences) {
  const auto first = std::stable_partition(sequences.begin(), sequences.end(),
                                           [](const scheduled_sequence* sequence) { return !sequence->suspect(); });
  const bool others_turn = first == sequences.end() || (had_last_step_ && first != sequences.begin());
  had_last_step_ = !others_turn;
  if (others_turn) {
    sequences.erase(first, sequences.end());
    return;
  }
  const auto waited_longer = [](const scheduled_sequence* a, const scheduled_sequence* b) {
    return a->last_step < b->last_step;
  };
  sequences = {*std::min_element(first, sequences.end(), waited_longer)};
}

}  // namespace troupe::detail
