#pragma once
#include <memory>
#include <optional>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "base/to_size.hpp"
#include "model/grammar/token_constraint.hpp"
#include "tests/base/refusal.hpp"
#include "tests/model/grammar/byte_vocabulary.hpp"

namespace troupe::test {

inline std::shared_ptr<const token_tree> byte_tokens(bool pieces = true) {
  const auto vocabulary = std::make_shared<byte_vocabulary>(pieces);
  return std::make_shared<token_tree>(vocabulary, vocabulary->size() + 5);
}

/// A random text under a constraint. After `hurried` tokens it takes closing marks where allowed, so that it comes to
/// an end. Empty if it does not within `most` tokens.
inline std::optional<std::string> random_text(token_constraint& under, const token_tree& tokens, std::mt19937& random,
                                              int hurried = 60, int most = 4000) {
  std::string text;
  auto state = under.start();
  for (int step = 0; step < most; ++step) {
    const bool may_end = under.is_complete(state);
    if (may_end && (!under.goes_on(state) || step > hurried || random() % 4 == 0)) return text;
    const token_mask& mask = under.allowed(state);
    std::vector<token_id> allowed, closing;
    for (token_id token = 0; token < tokens.vocab_size(); ++token) {
      if (!(mask[to_size(token) / 64] >> (token % 64) & 1)) continue;
      allowed.push_back(token);
      if (std::string_view("\"]}0:acx").find(tokens.bytes_of(token)[0]) != std::string_view::npos)
        closing.push_back(token);
    }
    if (allowed.empty()) return std::nullopt;
    const bool close = !closing.empty() && (step > hurried || random() % 4 == 0);
    const auto& from = close ? closing : allowed;
    const token_id token = from[random() % from.size()];
    text += tokens.bytes_of(token);
    state = under.after(state, token);
  }
  return std::nullopt;
}

inline byte_set all_bytes() {
  return byte_set().set();
}

/// The error of compiling a constraint; empty if there is none.
inline std::string refusal_of(constraint_kind kind, const std::string& text) {
  return refusal([&] { (void)compile({kind, text}, all_bytes()); });
}
inline void expect_refused(constraint_kind kind, const std::string& text, const std::string& word) {
  const std::string said = refusal_of(kind, text);
  EXPECT_NE(said.find(word), std::string::npos) << text << ": " << said;
  EXPECT_EQ(said.find('\n'), std::string::npos);
}

/// Each of its parts is three times the next one.
inline std::string schema_that_takes_too_long() {
  std::string schema = R"({"allOf":[{"$ref":"#/a"}])";
  for (char part = 'a'; part < 'l'; ++part) {
    const std::string next = std::string(R"({"$ref":"#/)") + static_cast<char>(part + 1) + "\"}";
    schema += std::string(",\"") + part + R"(":{"allOf":[)" + next + "," + next + "," + next + "]}";
  }
  return schema + R"(,"l":{"type":"object"}})";
}

/// Whether the bytes of a text are allowed one after another, and the text may end there.
inline bool allows(const output_constraint& constraint, std::string_view text) {
  text_automaton automaton(compile(constraint, all_bytes()));
  auto state = automaton.start();
  for (const char byte : text) state = automaton.next(state, static_cast<std::uint8_t>(byte));
  return automaton.is_complete(state);
}

}  // namespace troupe::test
