#pragma once
#include <span>
#include <vector>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// Guesses how a text goes on: by what followed the last time that its ending occurred. The longest ending of up to
/// four tokens counts; if it occurs in several places, the latest. Appends at most `most` tokens to `guesses`; none if
/// nothing repeats.
void look_up(std::span<const token_id> text, std::size_t most, std::vector<token_id>& guesses);

}  // namespace troupe
