#pragma once

namespace troupe::detail {

/// Unicode's White_Space.
bool is_white_space(char32_t value);
/// A letter, mark, digit, connector or joiner: what \w stands for in the patterns of published tokenizers.
bool is_word_character(char32_t value);

}  // namespace troupe::detail
