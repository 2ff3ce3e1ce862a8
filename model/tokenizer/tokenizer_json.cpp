#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/bpe_model.hpp"
#include "model/tokenizer/json_parts.hpp"
#include "model/tokenizer/text_tokenizer.hpp"
#include "model/tokenizer/tokenizer_config.hpp"
#include "model/tokenizer/vocabulary_builder.hpp"

namespace troupe {
namespace {

using namespace detail;
using json = nlohmann::json;

/// Tokens that are looked for in normalized text are written there the way the normalizer writes them.
void add_to_splitters(const std::vector<added_token>& tokens, const normalizer& normalize, added_token_splitter& raw,
                      added_token_splitter& normalized) {
  for (const auto& token : tokens) {
    if (!token.normalized) {
      raw.add(token, token.content);
      continue;
    }
    std::string storage;
    if (const auto content = normalize.apply(token.content, storage); !content.empty())
      normalized.add(token, std::string(content));
  }
}

void check_ids(const std::vector<token_id>& ids, const vocabulary& tokens, const std::string& where) {
  for (const auto id : ids)
    if (!tokens.holds(id)) refuse("{}: post_processor: names token id {}, but there are {}", where, id, tokens.size());
}

void settle_prefix_space(const tokenizer_config& config, json& root) {
  const auto wanted = prefix_space_of(config);
  const auto step = root.find("pre_tokenizer");
  if (wanted && step != root.end() && step->is_object() && step->contains("type") && (*step)["type"] == "ByteLevel")
    (*step)["add_prefix_space"] = *wanted;
}

vocabulary build_vocabulary(const bpe_part& model, const std::vector<added_token>& added, const decoder_part& decoder,
                            const std::string& where) {
  vocabulary_builder builder(where);
  for (const auto& [token, id] : model.tokens) builder.add(id, token, decoder.bytes_of(token));
  for (const auto& token : added) builder.add_added(token);
  return builder.take();
}

}  // namespace

std::shared_ptr<const tokenizer> parse_tokenizer_json(std::string_view text, std::string_view config,
                                                      const std::string& where) {
  auto root = parse_json(text, where);
  const json_fields<json> file(root, where);
  auto settings = read_tokenizer_config(config, where);
  leave_ends_to_file(settings);
  settle_prefix_space(settings, root);
  const auto added = read_added_tokens(file.find("added_tokens"), where + ": added_tokens");
  auto normalize = read_normalizer(file.find("normalizer"), where + ": normalizer");
  auto cut = read_pre_tokenizer(file.find("pre_tokenizer"), where + ": pre_tokenizer");
  auto model = read_model(file.find("model"), cut.byte_level, where + ": model");
  const auto decoder = read_decoder(file.find("decoder"), cut.byte_level, where + ": decoder");
  auto around = read_post_processor(file.find("post_processor"), where + ": post_processor");

  tokenizer_parts parts;
  parts.tokens = build_vocabulary(model, added, decoder, where);
  check_ids(around.before, parts.tokens, where);
  check_ids(around.after, parts.tokens, where);
  added_token_splitter in_normalized;
  add_to_splitters(added, normalize, parts.added, in_normalized);
  model.rules.byte_level = cut.byte_level;
  std::vector<std::string> mergeable(static_cast<std::size_t>(parts.tokens.size()));
  for (auto& [token, id] : model.tokens) mergeable[static_cast<std::size_t>(id)] = std::move(token);
  parts.model = std::make_shared<bpe_model>(std::move(normalize), std::move(in_normalized), std::move(cut.steps),
                                            bpe(mergeable, model.merges, model.rules));
  parts.before = std::move(around.before);
  parts.after = std::move(around.after);
  parts.strips_leading_space = decoder.strips_leading_space;
  apply_config(settings, parts);
  return std::make_shared<text_tokenizer>(std::move(parts));
}

}  // namespace troupe
