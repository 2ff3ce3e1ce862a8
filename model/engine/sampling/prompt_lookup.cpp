#include "model/engine/sampling/prompt_lookup.hpp"

#include <algorithm>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::size_t longest_ending = 4, shortest_ending = 2;
constexpr std::size_t most_searched = 4096;  // tokens: a guess must stay cheaper than what it may save

}  // namespace

void look_up(std::span<const token_id> text, std::size_t most, std::vector<token_id>& guesses) {
  if (text.size() > most_searched) text = text.last(most_searched);
  for (std::size_t length = longest_ending; length >= shortest_ending; --length) {
    if (text.size() <= length) continue;
    const auto ending = text.last(length), before = text.first(text.size() - 1);
    const auto found = std::find_end(before.begin(), before.end(), ending.begin(), ending.end());
    if (found == before.end()) continue;
    const auto next = to_size(found - before.begin()) + length;
    const auto guess = text.subspan(next, std::min(most, text.size() - next));
    guesses.insert(guesses.end(), guess.begin(), guess.end());
    return;
  }
}

}  // namespace troupe
