#include "model/engine/scheduling/suspects.hpp"

#include <algorithm>

namespace troupe::detail {

void suspects::set(scheduled_sequence& sequence, lost_steps lost) {
  count_ -= sequence.suspect();
  sequence.lost = lost;
  count_ += sequence.suspect();
}

void suspects::note_loss(scheduled_sequence& sequence, std::size_t from, std::size_t to, life_end why) {
  const lost_steps before = sequence.lost;
  // Nothing that it had not done before; but if it is lost here again, that counts, or there might be no end of it.
  if (to <= before.at) return set(sequence, {before.lives, from, before.by_link});
  const bool got_further = from > before.at;
  set(sequence, {.lives = got_further ? 1 : before.lives + 1,
                 .at = std::max(from, before.at),
                 .by_link = why == life_end::lost_link || (before.by_link && !got_further)});
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
