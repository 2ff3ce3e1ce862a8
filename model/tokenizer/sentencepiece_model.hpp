#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "model/tokenizer/tokenizer.hpp"

namespace troupe::detail {

/// The tokenizer of a tokenizer.model, read and run by the SentencePiece library. Bytes that are no UTF-8 become U+FFFD
/// in there. `config` is the text of tokenizer_config.json, or empty; without it a BOS is added, as Llama wants.
std::shared_ptr<const tokenizer> parse_tokenizer_model(std::string_view bytes, std::string_view config,
                                                       const std::string& where);

}  // namespace troupe::detail
