#include "model/formats/gguf/gguf.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe {
namespace {

using namespace test;
using ids = std::vector<token_id>;
using texts = std::vector<std::string>;
using integers = std::vector<std::int64_t>;
using numbers = std::vector<double>;

void set(gguf_file& file, const std::string& key, gguf_value value) {
  file.metadata["tokenizer.ggml." + key] = std::move(value);
}

/// <unk> <s> </s>, all bytes, and a few pieces whose scores say which forms first.
gguf_file sentencepiece_file() {
  texts tokens = {"<unk>", "<s>", "</s>"};
  integers types = {2, 3, 3};
  numbers scores = {0, 0, 0};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(6);
    scores.push_back(0);
  }
  const auto add = [&](const std::string& token, double score, std::int64_t type) {
    tokens.push_back(token);
    scores.push_back(score);
    types.push_back(type);
  };
  for (const auto* letter : {"\u2581", "a", "b", "c"}) add(letter, -100, 1);  // 259 ..
  add("ab", -2, 1);                                                           // 263
  add("bc", -1, 1);                                                           // 264
  add("\u2581a", -3, 1);                                                      // 265
  add("<tool>", -1000, 4);                                                    // 266
  gguf_file file;
  set(file, "model", std::string("llama"));
  set(file, "tokens", tokens);
  set(file, "token_type", types);
  set(file, "scores", scores);
  set(file, "bos_token_id", std::int64_t{1});
  set(file, "eos_token_id", std::int64_t{2});
  set(file, "unknown_token_id", std::int64_t{0});
  return file;
}

gguf_file byte_level_file() {
  texts tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(spell(std::string(1, static_cast<char>(byte))));
  tokens.insert(tokens.end(), {"\u0120t", "he", "<|end|>"});
  integers types(tokens.size(), 1);
  types.back() = 3;
  gguf_file file;
  set(file, "model", std::string("gpt2"));
  set(file, "pre", std::string("qwen2"));
  set(file, "tokens", tokens);
  set(file, "token_type", types);
  set(file, "merges", texts{"\u0120 t", "h e"});
  set(file, "eos_token_id", std::int64_t{258});
  return file;
}

std::string refusal_of(const gguf_file& file) {
  return refusal([&] { tokenizer_from_gguf(file); });
}

TEST(sentencepiece_gguf, merges_the_highest_score_first) {
  const auto tokens = tokenizer_from_gguf(sentencepiece_file());
  EXPECT_EQ(tokens->encode("abc"), (ids{1, 265, 264}));
  EXPECT_EQ(tokens->encode("abab", plain), (ids{259, 263, 263}));
  EXPECT_EQ(tokens->decode(tokens->encode("abc")), "abc");
}

/// The same tokens, of which the merges are listed in another order than the scores have it.
TEST(sentencepiece_gguf, of_gemma4_merges_as_its_list_says) {
  gguf_file file = sentencepiece_file();
  set(file, "model", std::string("gemma4"));
  set(file, "add_space_prefix", false);
  EXPECT_NE(refusal_of(file).find("tokenizer.ggml.merges"), std::string::npos);
  set(file, "merges", texts{"a b", "b c", "\u2581 a"});
  const auto tokens = tokenizer_from_gguf(file);
  EXPECT_EQ(tokens->encode("abc"), (ids{1, 263, 262}));
  EXPECT_EQ(tokens->encode("a abc", plain), (ids{260, 259, 263, 262}));
  EXPECT_EQ(tokens->decode(tokens->encode("a abc\n")), "a abc\n");
}

TEST(sentencepiece_gguf, spells_unknown_characters_by_bytes) {
  const auto tokens = tokenizer_from_gguf(sentencepiece_file());
  EXPECT_EQ(tokens->encode("\u00e9", plain), (ids{259, 3 + 0xC3, 3 + 0xA9}));
  EXPECT_EQ(tokens->decode(tokens->encode("a \u00e9\xFF\n")), "a \u00e9\xFF\n");
}

TEST(sentencepiece_gguf, follows_the_flags_for_space_bos_and_eos) {
  auto file = sentencepiece_file();
  set(file, "add_space_prefix", false);
  set(file, "add_bos_token", false);
  set(file, "add_eos_token", true);
  const auto tokens = tokenizer_from_gguf(file);
  EXPECT_EQ(tokens->encode("ab"), (ids{263, 2}));
  EXPECT_FALSE(tokens->strips_leading_space());
  EXPECT_EQ(tokens->decode(tokens->encode(" ab")), " ab");
}

TEST(sentencepiece_gguf, reads_special_and_user_defined_tokens_in_the_text) {
  const auto tokens = tokenizer_from_gguf(sentencepiece_file());
  EXPECT_EQ(tokens->encode("a</s><tool>", plain), (ids{265, 2, 266}));
  const auto unread = tokens->encode("a</s><tool>", {.add_special = false, .parse_special = false});
  EXPECT_EQ(unread.back(), 266);
  EXPECT_EQ(std::count(unread.begin(), unread.end(), 2), 0);
  EXPECT_TRUE(tokens->is_special(2));
  EXPECT_FALSE(tokens->is_special(266));
}

TEST(sentencepiece_gguf, lets_marks_of_phi3_take_the_line_break_behind_them) {
  auto file = sentencepiece_file();
  file.metadata["general.architecture"] = std::string("phi3");
  EXPECT_EQ(tokenizer_from_gguf(file)->encode("</s>\na<s> a", plain), (ids{2, 265, 1, 259, 265}));
  file.metadata["general.architecture"] = std::string("llama");
  EXPECT_EQ(tokenizer_from_gguf(file)->encode("</s>\na", plain).size(), 4u);
}

TEST(byte_level_gguf, uses_the_named_pre_tokenizer) {
  auto file = byte_level_file();
  const auto tokens = tokenizer_from_gguf(file);
  EXPECT_EQ(tokens->encode(" the<|end|>"), (ids{256, 257, 258}));
  EXPECT_EQ(tokens->encode("e\u0301"), tokens->encode("\u00e9"));
  EXPECT_EQ(tokens->find("\u0120t"), 256);
  EXPECT_EQ(tokens->bytes_of(256), " t");
  EXPECT_EQ(tokens->eos(), 258);
  set(file, "pre", std::string("tea-leaves"));
  EXPECT_NE(refusal_of(file).find("\"tea-leaves\""), std::string::npos);
}

TEST(byte_level_gguf, cuts_words_where_the_named_pre_tokenizer_does) {
  auto file = byte_level_file();
  auto tokens = std::get<texts>(file.metadata["tokenizer.ggml.tokens"]);
  tokens.insert(tokens.end(), {"\u0120\u0120", "55", "bC"});  // 259 ..
  set(file, "token_type", integers(tokens.size(), 1));
  set(file, "tokens", tokens);
  set(file, "merges", texts{"\u0120 \u0120", "5 5", "b C"});
  const auto encoded = [&](const char* pre, const char* text) {
    set(file, "pre", std::string(pre));
    return tokenizer_from_gguf(file)->encode(text, plain);
  };
  EXPECT_EQ(encoded("gpt-2", "  55bC"), (ids{' ', ' ', 260, 261}));
  EXPECT_EQ(encoded("smollm", "  55bC"), (ids{259, '5', '5', 261}));
  EXPECT_EQ(encoded("tekken", "55bC"), (ids{'5', '5', 'b', 'C'}));
  EXPECT_EQ(encoded("gpt-4o", "55bC"), (ids{260, 'b', 'C'}));
  for (const auto* text : {"  55bC", "e\u0301"}) EXPECT_EQ(encoded("qwen35", text), encoded("qwen2", text));
  for (const auto* text : {"  55bC", "e\u0301"}) EXPECT_EQ(encoded("deepseek-r1-qwen", text), encoded("qwen2", text));
  for (const auto* pre : {"falcon3", "midm-2.0", "pixtral", "lfm2", "smaug-bpe", "dbrx", "glm4", "chatglm-bpe"})
    EXPECT_EQ(encoded(pre, "  55bC"), encoded("llama-bpe", "  55bC")) << pre;
  for (const auto* pre : {"olmo", "a.x-4.0", "mellum", "trillion"})
    EXPECT_EQ(encoded(pre, "  55bC"), encoded("gpt-2", "  55bC")) << pre;
  EXPECT_EQ(encoded("minerva-7b", "  55bC"), encoded("smollm", "  55bC"));
  EXPECT_EQ(encoded("command-r", "  55bC"), encoded("smollm", "  55bC"));
  EXPECT_EQ(encoded("refact", "  55bC"), encoded("smollm", "  55bC")) << "Granite";
  EXPECT_EQ(encoded("deepseek-coder", "  55bC"), (ids{259, '5', '5', 261}));
  EXPECT_EQ(encoded("deepseek-llm", "  55bC"), (ids{259, 260, 261}));
  EXPECT_EQ(encoded("deepseek-v3", "  55bC"), (ids{259, 260, 261}));
  EXPECT_EQ(encoded("deepseek-llm", "5555"), (ids{260, 260}));
  EXPECT_EQ(encoded("deepseek-v3", "5555"), (ids{260, '5', '5'})) << "three digits at most";
}

TEST(byte_level_gguf, guesses_no_pre_tokenizer) {
  auto file = byte_level_file();
  file.metadata.erase("tokenizer.ggml.pre");
  file.metadata["general.architecture"] = std::string("llama");
  EXPECT_NE(refusal_of(file).find("tokenizer.ggml.pre"), std::string::npos);
  set(file, "pre", std::string("default"));
  EXPECT_NE(refusal_of(file).find("tokenizer.ggml.pre"), std::string::npos);
  file.metadata["general.architecture"] = std::string("gpt2");
  EXPECT_EQ(tokenizer_from_gguf(file)->encode(" t"), ids{256});
}

TEST(byte_level_gguf, adds_a_bos_for_llama3_alone) {
  auto file = byte_level_file();
  set(file, "bos_token_id", std::int64_t{258});
  EXPECT_EQ(tokenizer_from_gguf(file)->encode("h"), ids{'h'});
  set(file, "pre", std::string("llama-bpe"));
  EXPECT_EQ(tokenizer_from_gguf(file)->encode("h"), (ids{258, 'h'}));
}

TEST(gguf_tokenizer, is_refused_by_key_and_cause) {
  EXPECT_NE(refusal_of(gguf_file())
                .find("GGUF metadata: has no tokenizer.ggml.model: give prompts as token ids (--tokens), or"),
            std::string::npos);
  const auto broken = [](gguf_file file, const std::string& key, gguf_value value) {
    set(file, key, std::move(value));
    return refusal_of(file);
  };
  EXPECT_NE(broken(byte_level_file(), "model", std::string("bert")).find("\"bert\""), std::string::npos);
  EXPECT_NE(broken(byte_level_file(), "tokens", std::string("x")).find("should be a list of texts"), std::string::npos);
  EXPECT_NE(broken(byte_level_file(), "tokens", texts{}).find("tokens"), std::string::npos);
  EXPECT_NE(broken(byte_level_file(), "token_type", integers{1}).find("token_type"), std::string::npos);
  EXPECT_NE(broken(byte_level_file(), "merges", texts{"h zz"}).find("\"zz\""), std::string::npos);
  for (const auto* merge : {"", "h", "\u0120"})
    EXPECT_NE(broken(byte_level_file(), "merges", texts{merge}).find("merges[0]"), std::string::npos) << merge;
  EXPECT_NE(broken(byte_level_file(), "eos_token_id", std::int64_t{259}).find("eos_token_id"), std::string::npos);
  EXPECT_NE(broken(sentencepiece_file(), "bos_token_id", std::int64_t{-1}).find("bos_token_id"), std::string::npos);
  EXPECT_NE(broken(sentencepiece_file(), "scores", numbers{1}).find("scores"), std::string::npos);
  EXPECT_NE(broken(sentencepiece_file(), "scores", numbers(267, std::nan(""))).find("scores"), std::string::npos);
}

TEST(gguf_tokenizer, refuses_a_token_that_comes_twice) {
  auto file = byte_level_file();
  auto tokens = std::get<texts>(file.metadata["tokenizer.ggml.tokens"]);
  tokens[257] = tokens[256];
  set(file, "tokens", tokens);
  EXPECT_NE(refusal_of(file).find("two ids, 256 and 257"), std::string::npos);
}

}  // namespace
}  // namespace troupe
