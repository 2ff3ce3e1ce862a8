#pragma once
#include <string>

#include <nlohmann/json.hpp>

namespace troupe::test {

/// A tokenizer.json of 96 tokens: <s>, then one letter a token from ' ' + 1 on, and </s> as token 95.
inline nlohmann::ordered_json letters_tokenizer() {
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
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
}

}  // namespace troupe::test
