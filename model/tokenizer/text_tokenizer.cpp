#include "model/tokenizer/text_tokenizer.hpp"

#include "base/to_size.hpp"

namespace troupe::detail {

std::optional<token_id> vocabulary::find(std::string_view token) const {
  const auto found = ids.find(token);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

std::vector<token_id> text_tokenizer::encode(std::string_view text, encode_options options) const {
  std::vector<token_id> out;
  if (options.add_special) out = parts_.before;
  parts_.added.split(
      text, options.parse_special,
      [&](std::string_view part) {
        parts_.model->encode(part, part.data() == text.data(), options.parse_special, out);
      },
      [&](token_id token) { out.push_back(token); });
  if (options.add_special) out.insert(out.end(), parts_.after.begin(), parts_.after.end());
  return out;
}

std::string_view text_tokenizer::bytes_of(token_id token) const {
  if (!parts_.tokens.holds(token)) return {};
  return parts_.tokens.bytes[to_size(token)];
}

std::string text_tokenizer::decode(std::span<const token_id> tokens, bool skip_special) const {
  std::string out;
  for (const auto token : tokens)
    if (!skip_special || !is_special(token)) out += bytes_of(token);
  if (parts_.strips_leading_space && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

}  // namespace troupe::detail
