#pragma once
#include <string>
#include <vector>

#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/text_tokenizer.hpp"

namespace troupe::detail {

/// Merges that a file lists, "left right" each, the first merging first.
std::vector<bpe_merge> listed_merges(const std::vector<std::string>& merges, const vocabulary& tokens,
                                     const std::string& where);
/// SentencePiece's merges: any two tokens that make a third, the third's score telling which goes first.
/// `joins[id]`: the token takes part.
std::vector<bpe_merge> scored_merges(const vocabulary& tokens, const std::vector<bool>& joins,
                                     const std::vector<double>& scores, const std::string& where);

}  // namespace troupe::detail
