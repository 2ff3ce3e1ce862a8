#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace troupe::test {

/// What puts <s> before a text.
inline const nlohmann::ordered_json begins_texts{
    {"type", "TemplateProcessing"},
    {"single", {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
    {"pair", nlohmann::ordered_json::array()},
    {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {0}}, {"tokens", {"<s>"}}}}}}};

/// A tokenizer.json of 96 tokens: <s>, then one letter a token from ' ' + 1 on, and </s> as token 95.
inline nlohmann::ordered_json letters_tokenizer(const nlohmann::ordered_json& post_processor = nullptr) {
  using json = nlohmann::ordered_json;
  json vocabulary{{"<s>", 0}};
  for (int id = 1; id < 95; ++id) vocabulary[std::string(1, static_cast<char>(' ' + id))] = id;
  vocabulary["</s>"] = 95;
  const auto special = [](int id, const char* text) {
    return json{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  return {{"added_tokens", {special(0, "<s>"), special(95, "</s>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", post_processor},
          {"decoder", nullptr},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
}

inline constexpr int space_mark = 92;
/// The same letters without "|", whose token is SentencePiece's space, which decoding takes away from a text's start.
inline nlohmann::ordered_json spaced_letters_tokenizer() {
  nlohmann::ordered_json tokens = letters_tokenizer();
  nlohmann::ordered_json& vocabulary = tokens["model"]["vocab"];
  vocabulary.erase("|");
  vocabulary["\u2581"] = space_mark;
  tokens["decoder"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "first"}};
  return tokens;
}

}  // namespace troupe::test
