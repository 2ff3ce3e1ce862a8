#include "model/tokenizer/bpe_model.hpp"

namespace troupe::detail {

void bpe_model::encode(std::string_view text, bool at_start, bool parse_special, std::vector<token_id>& out) const {
  std::string storage;
  const auto normalized = normalize_.apply(text, storage);
  if (added_.empty()) return encode_plain(normalized, at_start, out);
  added_.split(
      normalized, parse_special,
      [&](std::string_view part) { encode_plain(part, at_start && part.data() == normalized.data(), out); },
      [&](token_id token) { out.push_back(token); });
}

void bpe_model::encode_plain(std::string_view text, bool at_start, std::vector<token_id>& out) const {
  if (text.empty()) return;
  word_list list;
  list.text = text;
  list.words = {{0, text.size()}};
  list.at_start = at_start;
  cut_.apply(list);
  for (const auto& each : list.words) merge_.encode(list.word(each), out);
}

}  // namespace troupe::detail
