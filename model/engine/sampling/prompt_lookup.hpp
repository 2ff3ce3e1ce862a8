#pragma once
#include <span>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// Guesses how a text goes on: what followed the last time that its ending stood there. The longest ending of up to
/// four tokens counts, of several places the latest. Appends at most `most` tokens to `guesses`; none where nothing
/// repeats.
void look_up(std::span<const token_id> text, std::size_t most, std::vector<token_id>& guesses);

}  // namespace troupe
