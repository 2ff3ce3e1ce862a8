#pragma once
#include <memory>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe::bench {

/// A vocabulary as large as the model's, of the kinds of tokens that published ones have: bytes, words of random
/// letters with and without a space before them, numbers, the marks of JSON, indents. Encodes nothing.
std::shared_ptr<const tokenizer> word_vocabulary(std::int64_t size);

}  // namespace troupe::bench
