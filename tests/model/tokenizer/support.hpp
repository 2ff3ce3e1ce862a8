#pragma once
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/utf8.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "tests/base/places.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe::test {

inline std::filesystem::path shared(const std::string& path) {
  return shared_data / path;
}
inline std::filesystem::path fixture(const std::string& name) {
  return fixtures / "tokenizers" / name;
}

inline std::shared_ptr<const tokenizer> from_json(const std::filesystem::path& path) {
  return parse_tokenizer_json(read_file(path), "", path.string());
}

inline constexpr encode_options plain{.add_special = false, .parse_special = true};

/// How GPT-2's vocabulary spells these bytes.
inline std::string spell(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_utf8(out, detail::letter_of(static_cast<std::uint8_t>(byte)));
  return out;
}

/// A tokenizer whose tokens are single letters or listed merges of letters: enough to see rules at work.
inline std::string tiny_json(const std::string& vocab, const std::string& merges, const std::string& rest = "") {
  return R"({"model":{"type":"BPE","vocab":)" + vocab + R"(,"merges":)" + merges + "}" + (rest.empty() ? "" : ",") +
         rest + "}";
}

}  // namespace troupe::test

#define TROUPE_NEEDS(path) \
  if (!std::filesystem::exists(path)) GTEST_SKIP() << (path).string() << " is not here"
