#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/gguf/gguf.hpp"
#include "model/tokenizer/bpe_model.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/gguf_merges.hpp"
#include "model/tokenizer/patterns.hpp"
#include "model/tokenizer/text_tokenizer.hpp"
#include "model/tokenizer/vocabulary_builder.hpp"

namespace troupe {
namespace {

using namespace detail;

enum token_type : std::int64_t { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

/// The keys under "tokenizer.ggml.", each of one type.
class ggml_keys {
 public:
  explicit ggml_keys(const gguf_file& file) : file_(file) {}

  template <class Value>
  const Value* find(std::string_view name) const {
    return file_.find<Value>("tokenizer.ggml." + std::string(name));
  }

  template <class Value>
  const Value& need(std::string_view name) const {
    const auto* value = find<Value>(name);
    if (!value) refuse("{}: has no tokenizer.ggml.{}", where(), name);
    return *value;
  }

  bool flag(std::string_view name, bool fallback) const {
    const auto* value = find<bool>(name);
    return value ? *value : fallback;
  }

  std::optional<token_id> token(std::string_view name, std::size_t count) const {
    const auto* id = find<std::int64_t>(name);
    if (!id) return std::nullopt;
    if (*id < 0 || to_size(*id) >= count)
      refuse("{}: tokenizer.ggml.{} is {}, but there are {} tokens", where(), name, *id, count);
    return static_cast<token_id>(*id);
  }

  std::string architecture() const { return file_.get<std::string>("general.architecture").value_or(""); }
  const std::string& where() const { return file_.name; }

 private:
  const gguf_file& file_;
};

/// How the kinds of pre-tokenizer that GGUF knows by these names treat text.
struct text_rules {
  std::array<std::string_view, 7> names;
  std::array<std::string_view, 6> patterns;  ///< one after the other, each on all pieces
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

constexpr std::array<text_rules, 13> known_rules = {{
    {.names = {"gpt-2", "olmo", "a.x-4.0", "mellum", "trillion"}, .patterns = {gpt2_pattern}},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "midm-2.0", "pixtral", "lfm2"},
     .patterns = {llama3_pattern},
     .ignore_merges = true,
     .add_bos = true},
    {.names = {"smaug-bpe", "dbrx", "glm4", "chatglm-bpe"}, .patterns = {llama3_pattern}},
    {.names = {"qwen2", "deepseek-r1-qwen"}, .patterns = {qwen2_pattern}, .nfc = true},
    {.names = {"qwen35"}, .patterns = {qwen35_pattern}, .nfc = true},
    {.names = {"megrez"}, .patterns = {qwen2_pattern}},
    {.names = {"smollm", "minerva-7b", "refact"}, .patterns = {smollm_pattern}},
    {.names = {"command-r"}, .patterns = {smollm_pattern}, .nfc = true},
    {.names = {"gpt-4o"}, .patterns = {gpt4o_pattern}},
    {.names = {"tekken"}, .patterns = {tekken_pattern}, .ignore_merges = true, .add_bos = true},
    {.names = {"deepseek-coder"}, .patterns = deepseek_coder_patterns},
    {.names = {"deepseek-llm"}, .patterns = deepseek_llm_patterns},
    {.names = {"deepseek-v3"}, .patterns = deepseek_v3_patterns},
}};

/// Older files of other models than GPT-2 do not say how their text is split: a guess would give other tokens.
std::string rules_name(const ggml_keys& keys) {
  const auto* named = keys.find<std::string>("pre");
  if (named && !named->empty() && *named != "default") return *named;
  if (keys.architecture() == "gpt2") return "gpt-2";
  refuse("{}: tokenizer.ggml.pre does not say how text is split: convert the model again, with a newer converter",
         keys.where());
}

const text_rules& rules_for(const ggml_keys& keys) {
  const std::string name = rules_name(keys);
  for (const text_rules& rules : known_rules)
    if (std::find(rules.names.begin(), rules.names.end(), name) != rules.names.end()) return rules;
  refuse(
      "{}: tokenizer.ggml.pre \"{}\" is not supported (gpt-2, gpt-4o, llama-bpe, qwen2, qwen35, smollm, tekken and "
      "relatives are)",
      keys.where(), name);
}

pre_tokenizer cutter_of(const text_rules& rules, const std::string& where) {
  pre_tokenizer cut;
  for (const std::string_view pattern : rules.patterns)
    if (!pattern.empty()) cut.add(split_step{regex_of(pattern, where), split_behavior::isolated, false});
  return cut;
}

struct gguf_vocabulary {
  const std::vector<std::string>& tokens;
  std::vector<std::int64_t> types;
  bool takes_space_behind = false;  ///< tokens that are looked for do
};

/// GGUF has no word for it, so llama.cpp knows it of this family: Phi-3's marks take the line break behind them.
bool takes_space_behind(const std::string& token) {
  constexpr std::array others{"<unk>", "<s>", "<|endoftext|>"};
  return std::find(others.begin(), others.end(), token) == others.end();
}

void mark_control(const ggml_keys& keys, gguf_vocabulary& all) {
  for (const auto* name : {"bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id"})
    if (const auto id = keys.token(name, all.tokens.size())) all.types[to_size(*id)] = control;
}

gguf_vocabulary read_vocabulary(const ggml_keys& keys) {
  gguf_vocabulary all{keys.need<std::vector<std::string>>("tokens"), {}};
  const auto count = all.tokens.size();
  if (count == 0 || count > std::size_t{most_vocabulary})
    refuse("{}: tokenizer.ggml.tokens has {} tokens", keys.where(), count);
  if (const auto* types = keys.find<std::vector<std::int64_t>>("token_type")) {
    if (types->size() != count)
      refuse("{}: tokenizer.ggml.token_type has {} elements for {} tokens", keys.where(), types->size(), count);
    for (std::size_t i = 0; i < count; ++i)
      if ((*types)[i] < 0 || (*types)[i] > byte)
        refuse("{}: token {} has the unknown type {}", keys.where(), i, (*types)[i]);
    all.types = *types;
  } else {
    all.types.assign(count, normal);
    mark_control(keys, all);
  }
  return all;
}

bool is_looked_for(std::int64_t type) {
  return type == control || type == unknown || type == user_defined;
}

/// Fills vocabulary and added tokens; `bytes_of` tells what a token stands for that is not looked for in the text.
template <class BytesOf>
void add_tokens(const ggml_keys& keys, const gguf_vocabulary& all, const BytesOf& bytes_of, tokenizer_parts& parts) {
  vocabulary_builder builder(keys.where());
  for (std::size_t i = 0; i < all.tokens.size(); ++i) {
    added_token token;
    token.id = static_cast<token_id>(i);
    token.content = all.tokens[i];
    token.special = all.types[i] != user_defined;
    token.rstrip = all.takes_space_behind && takes_space_behind(token.content);
    if (!is_looked_for(all.types[i])) {
      builder.add(token.id, token.content, bytes_of(i));
      continue;
    }
    if (token.content.empty() || token.content.size() > added_token_splitter::longest_content)
      refuse("{}: token {} should have 1 to {} bytes", keys.where(), i, added_token_splitter::longest_content);
    builder.add_added(token);
    parts.added.add(token, token.content);
  }
  parts.tokens = builder.take();
}

/// Merges neither make nor join the tokens that are looked for: they count as empty.
std::vector<std::string> mergeable_tokens(const gguf_vocabulary& all) {
  auto tokens = all.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (is_looked_for(all.types[i])) tokens[i].clear();
  return tokens;
}

void add_bos_and_eos(const ggml_keys& keys, bool bos_by_default, tokenizer_parts& parts) {
  const auto count = to_size(parts.tokens.size());
  parts.bos = keys.token("bos_token_id", count);
  parts.eos = keys.token("eos_token_id", count);
  parts.tokens.mark_special(parts.bos);
  parts.tokens.mark_special(parts.eos);
  if (keys.flag("add_bos_token", bos_by_default) && parts.bos) parts.before = {*parts.bos};
  if (keys.flag("add_eos_token", false) && parts.eos) parts.after = {*parts.eos};
}

std::shared_ptr<const tokenizer> byte_level_tokenizer(const ggml_keys& keys) {
  const auto& rules = rules_for(keys);
  const auto all = read_vocabulary(keys);
  tokenizer_parts parts;
  add_tokens(
      keys, all, [&](std::size_t i) { return bytes_of_spelling(all.tokens[i]).value_or(all.tokens[i]); }, parts);
  normalizer normalize;
  if (rules.nfc) normalize.add(nfc_step{});
  const auto merges = listed_merges(keys.need<std::vector<std::string>>("merges"), parts.tokens, keys.where());
  parts.model = std::make_shared<bpe_model>(
      std::move(normalize), added_token_splitter(), cutter_of(rules, keys.where() + ": tokenizer.ggml.pre"),
      bpe(mergeable_tokens(all), merges,
          {.byte_level = true, .ignore_merges = rules.ignore_merges, .unknown = std::nullopt}));
  add_bos_and_eos(keys, rules.add_bos, parts);
  return std::make_shared<text_tokenizer>(std::move(parts));
}

/// Gemma 4's are listed; others follow from the tokens' scores.
std::vector<bpe_merge> sentencepiece_merges(const ggml_keys& keys, const gguf_vocabulary& all,
                                            const vocabulary& tokens) {
  if (keys.need<std::string>("model") == "gemma4")
    return listed_merges(keys.need<std::vector<std::string>>("merges"), tokens, keys.where());
  const auto& scores = keys.need<std::vector<double>>("scores");
  if (scores.size() != all.tokens.size())
    refuse("{}: tokenizer.ggml.scores has {} elements for {} tokens", keys.where(), scores.size(), all.tokens.size());
  std::vector<bool> joins(all.tokens.size());
  for (std::size_t i = 0; i < joins.size(); ++i) joins[i] = !is_looked_for(all.types[i]) && all.types[i] != byte;
  return scored_merges(tokens, joins, scores, keys.where());
}

std::shared_ptr<const tokenizer> sentencepiece_tokenizer(const ggml_keys& keys) {
  auto all = read_vocabulary(keys);
  all.takes_space_behind = keys.architecture() == "phi3";
  tokenizer_parts parts;
  add_tokens(
      keys, all, [&](std::size_t i) { return sentencepiece_bytes(all.tokens[i], all.types[i] == byte); }, parts);
  const auto merges = sentencepiece_merges(keys, all, parts.tokens);
  normalizer normalize;
  parts.strips_leading_space = keys.flag("add_space_prefix", true);
  if (parts.strips_leading_space) normalize.add(prepend_step{" "});
  normalize.add(replace_text_step{" ", std::string(visible_space)});
  bpe_rules rules{.byte_fallback = true, .fuse_unknown = true, .unknown = std::nullopt};
  rules.unknown = keys.token("unknown_token_id", all.tokens.size());
  parts.model = std::make_shared<bpe_model>(std::move(normalize), added_token_splitter(), pre_tokenizer(),
                                            bpe(mergeable_tokens(all), merges, rules));
  add_bos_and_eos(keys, true, parts);
  return std::make_shared<text_tokenizer>(std::move(parts));
}

}  // namespace

std::shared_ptr<const tokenizer> tokenizer_from_gguf(const gguf_file& file) {
  const ggml_keys keys(file);
  if (!keys.find<std::string>("model"))
    refuse("{}: has no tokenizer.ggml.model: give prompts as token ids (--tokens), or take a file with a tokenizer",
           keys.where());
  const auto& model = keys.need<std::string>("model");
  if (model == "gpt2") return byte_level_tokenizer(keys);
  if (model == "llama" || model == "gemma4") return sentencepiece_tokenizer(keys);
  refuse("{}: tokenizer.ggml.model \"{}\" is not supported (gpt2, llama and gemma4 are)", file.name, model);
}

}  // namespace troupe
