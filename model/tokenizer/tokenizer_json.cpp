#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/to_size.hpp"
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

/// The added tokens of both files. Where both have one the configuration's flags count; its own get their ids, unless
/// these are taken.
class added_list {
 public:
  added_list(std::vector<added_token> in_file, const bpe_part& model) : model_(model), tokens_(std::move(in_file)) {
    for (const auto& [token, id] : model.tokens) take_id(id);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      places_.emplace(tokens_[i].content, i);
      take_id(tokens_[i].id);
    }
  }

  void merge(added_token token) {
    if (const auto place = places_.find(token.content); place != places_.end()) {
      auto& known = tokens_[place->second];
      token.id = known.id;
      token.special = token.special || known.special;
      known = std::move(token);
    } else if (!add_known(token) && !is_taken(token.id)) {
      add(std::move(token));
    }
  }

  void add_missing(added_token token) {
    if (!places_.contains(token.content)) merge(std::move(token));
  }

  /// A token that is looked for as its kind is, if one of the files has it: a special one is no plain text.
  bool add_special(added_token token) { return places_.contains(token.content) || add_known(std::move(token)); }

  std::vector<added_token> take() { return std::move(tokens_); }

 private:
  bool add_known(added_token token) {
    const auto found = model_.ids.find(token.content);
    if (found == model_.ids.end()) return false;
    token.id = found->second;
    add(std::move(token));
    return true;
  }
  void add(added_token token) {
    places_.emplace(token.content, tokens_.size());
    tokens_.push_back(std::move(token));
  }
  void take_id(token_id id) {
    if (to_size(id) >= taken_.size()) taken_.resize(to_size(id) + 1);
    taken_[to_size(id)] = true;
  }
  bool is_taken(token_id id) const { return to_size(id) < taken_.size() && taken_[to_size(id)]; }

  const bpe_part& model_;
  std::vector<added_token> tokens_;
  text_map<std::size_t> places_;  ///< content → index into tokens_
  std::vector<bool> taken_;       ///< ids that the tokenizer's own file gives
};

std::vector<added_token> merge_added(std::vector<added_token> in_file, const tokenizer_config& config,
                                     const bpe_part& model) {
  added_list all(std::move(in_file), model);
  for (const auto& token : config.added) all.merge(token);
  for (const auto& token : config.further) all.add_missing(token);
  for (const auto& name : {config.bos.name, config.eos.name})
    if (name && name->size() <= added_token_splitter::longest_content)
      all.add_special({.id = -1, .content = *name, .special = true});
  for (const auto& token : config.special)
    if (!all.add_special(token))
      refuse(
          "{}: \"{}\" is listed as a special token, but has no id: add it to \"added_tokens_decoder\" with its id, or "
          "take it from the list",
          config.where, token.content.substr(0, 100));
  return all.take();
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
  // Special ones are shown as they are written, and the byte alphabet is none of the added tokens' own. Others are read
  // back like the model's: some vocabularies add runs of spaces, "▁▁".
  for (const auto& token : added)
    builder.add_added(token, token.special || decoder.byte_level ? token.content : decoder.bytes_of(token.content));
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
  auto normalize = read_normalizer(file.find("normalizer"), where + ": normalizer");
  auto cut = read_pre_tokenizer(file.find("pre_tokenizer"), where + ": pre_tokenizer");
  auto model = read_model(file.find("model"), cut.byte_level, where + ": model");
  const auto added =
      merge_added(read_added_tokens(file.find("added_tokens"), where + ": added_tokens"), settings, model);
  const auto decoder = read_decoder(file.find("decoder"), cut.byte_level, where + ": decoder");
  auto around = read_post_processor(file.find("post_processor"), where + ": post_processor");

  tokenizer_parts parts;
  parts.tokens = build_vocabulary(model, added, decoder, where);
  check_ids(around.before, parts.tokens, where);
  check_ids(around.after, parts.tokens, where);
  added_token_splitter in_normalized;
  add_to_splitters(added, normalize, parts.added, in_normalized);
  model.rules.byte_level = cut.byte_level;
  std::vector<std::string> mergeable(to_size(parts.tokens.size()));
  for (auto& [token, id] : model.tokens) mergeable[to_size(id)] = std::move(token);
  parts.model = std::make_shared<bpe_model>(std::move(normalize), std::move(in_normalized), std::move(cut.steps),
                                            bpe(mergeable, model.merges, model.rules));
  parts.before = std::move(around.before);
  parts.after = std::move(around.after);
  parts.strips_leading_space = decoder.strips_leading_space;
  apply_config(settings, parts);
  return std::make_shared<text_tokenizer>(std::move(parts));
}

}  // namespace troupe
