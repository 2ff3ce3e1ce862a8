#include "bench/word_vocabulary.hpp"

#include <random>
#include <set>
#include <string>

#include "base/to_size.hpp"

namespace troupe::bench {
namespace {

class numbered_words final : public tokenizer {
 public:
  explicit numbered_words(std::int64_t size) {
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    for (const char* mark :
         {"{\"", "\":", "\": ", "\": \"", "\",", "\", \"", "\"}", "},", "[]", "{}", "\"]", " \"", "\\n", "é", "漢"})
      add(mark);
    for (int i = 1; i <= 16; ++i) add("\n" + std::string(to_size(i), ' '));
    for (int i = 10; i < 1000; ++i) add(std::to_string(i));
    std::mt19937 random(1);
    while (this->size() < size) add(word(random));
  }

  std::vector<token_id> encode(std::string_view, encode_options) const override { return {}; }
  std::string_view bytes_of(token_id token) const override {
    return token >= 0 && token < size() ? std::string_view(texts_[to_size(token)]) : "";
  }
  std::string decode(std::span<const token_id>, bool) const override { return {}; }
  bool strips_leading_space() const override { return false; }
  std::int32_t size() const override { return static_cast<std::int32_t>(texts_.size()); }
  bool is_special(token_id) const override { return false; }
  std::optional<token_id> find(std::string_view) const override { return std::nullopt; }
  std::optional<token_id> bos() const override { return std::nullopt; }
  std::optional<token_id> eos() const override { return std::nullopt; }

 private:
  void add(std::string text) {
    if (known_.insert(text).second) texts_.push_back(std::move(text));
  }
  static std::string word(std::mt19937& random) {
    static constexpr std::string_view letters = "eeeeetttaaaooiinnsshhrrddlucmfwygpbvkxqjz";
    std::string text = random() % 2 ? " " : "";
    for (unsigned left = 2 + random() % 6; left > 0; --left) text += letters[random() % letters.size()];
    return text;
  }

  std::vector<std::string> texts_;
  std::set<std::string> known_;
};

}  // namespace

std::shared_ptr<const tokenizer> word_vocabulary(std::int64_t size) {
  return std::make_shared<numbered_words>(size);
}

}  // namespace troupe::bench
