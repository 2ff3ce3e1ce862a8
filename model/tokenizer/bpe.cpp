#include "model/tokenizer/bpe.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/bpe_heap.hpp"
#include "model/tokenizer/byte_alphabet.hpp"

namespace troupe::detail {
namespace {

constexpr token_id none = -1;
// Up to here looking through all pairs again after each merge is faster than a heap.
constexpr std::size_t longest_short_word = 64;

token_id result_of(std::uint64_t merge) {
  return static_cast<token_id>(merge & 0xFFFFFFFFu);
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, next_code_point(text, 0).length);
}

std::string_view final_character(std::string_view text) {
  std::size_t at = 0;
  for (std::size_t next = 0; next < text.size(); next += next_code_point(text, next).length) at = next;
  return text.substr(at);
}

}  // namespace

bpe::bpe(const std::vector<std::string>& tokens, const std::vector<bpe_merge>& merges, bpe_rules rules)
    : rules_(rules), merges_(merges.size()), characters_(1024), seams_(1024) {
  for (const auto& merge : merges) merges_.put(pack(merge.left, merge.right), pack(merge.rank, merge.result));
  bytes_.fill(none);
  index_characters(tokens);
  index_bytes(tokens);
  if (!rules_.byte_level) index_seams(tokens, merges);
  if (rules_.ignore_merges) index_words(tokens);
}

void bpe::index_characters(const std::vector<std::string>& tokens) {
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto& token = tokens[id];
    if (token.empty()) continue;
    const auto point = next_code_point(token, 0);
    if (point.valid && point.length == token.size()) characters_.put(point.value, id);
  }
}

void bpe::index_bytes(const std::vector<std::string>& tokens) {
  for (int byte = 0; byte < 256 && rules_.byte_level; ++byte) {
    const auto id = characters_.get(letter_of(static_cast<std::uint8_t>(byte)));
    if (id != pair_table::absent) bytes_[to_size(byte)] = static_cast<token_id>(id);
  }
  if (!rules_.byte_fallback || rules_.byte_level) return;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (const auto byte = fallback_byte(tokens[id])) bytes_[*byte] = static_cast<token_id>(id);
}

void bpe::index_seams(const std::vector<std::string>& tokens, const std::vector<bpe_merge>& merges) {
  std::vector<bool> fallback(tokens.size());
  for (const auto id : bytes_)
    if (id != none) fallback[to_size(id)] = true;
  if (rules_.unknown) fallback[to_size(*rules_.unknown)] = true;
  for (const auto& merge : merges) {
    // Such a symbol is not spelled by its first and last character: leave words whole.
    if (fallback[to_size(merge.left)] || fallback[to_size(merge.right)]) return;
    const auto last = character_id(final_character(tokens[to_size(merge.left)]));
    const auto first = character_id(first_character(tokens[to_size(merge.right)]));
    if (last != none && first != none) seams_.put(pack(last, first), 1);
  }
  has_seams_ = true;
}

void bpe::index_words(const std::vector<std::string>& tokens) {
  words_.reserve(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto id32 = static_cast<token_id>(id);
    if (!rules_.byte_level)
      words_.emplace(tokens[id], id32);
    else if (auto bytes = bytes_of_spelling(tokens[id]))
      words_.emplace(std::move(*bytes), id32);
  }
}

token_id bpe::character_id(std::string_view character) const {
  if (character.empty()) return none;
  const auto point = next_code_point(character, 0);
  const auto id = point.valid ? characters_.get(point.value) : pair_table::absent;
  return id == pair_table::absent ? none : static_cast<token_id>(id);
}

/// Encodes one word: collects symbols, and merges those it has wherever no merge can join two neighbours.
class bpe::word_encoder {
 public:
  /// `symbols` is empty, and again so afterwards.
  word_encoder(const bpe& model, std::vector<token_id>& symbols, std::vector<token_id>& out)
      : model_(model), symbols_(symbols), out_(out) {}

  void encode(std::string_view word) {
    if (model_.rules_.byte_level)
      add_bytes(word);
    else
      add_characters(word);
    merge();
  }

 private:
  void add_bytes(std::string_view word) {
    bool known = true;
    for (const char byte : word) {
      const auto id = byte_id(byte);
      if (id != none) symbols_.push_back(id);
      if (id == none && counts_as_unknown(known)) symbols_.push_back(*model_.rules_.unknown);
      known = id != none;
    }
  }

  void add_characters(std::string_view word) {
    bool known = true;
    for (std::size_t at = 0; at < word.size();) {
      const auto character = word.substr(at, next_code_point(word, at).length);
      at += character.size();
      const bool next_known = add_character(character) || add_fallback(character);
      if (!next_known && counts_as_unknown(known)) add(*model_.rules_.unknown);
      known = next_known;
    }
  }

  bool add_character(std::string_view character) {
    const auto id = model_.character_id(character);
    if (id != none) add(id);
    return id != none;
  }

  /// Spells a character that is no token by its bytes, if all of them are tokens.
  bool add_fallback(std::string_view character) {
    if (!model_.rules_.byte_fallback ||
        std::any_of(character.begin(), character.end(), [&](char byte) { return byte_id(byte) == none; }))
      return false;
    for (const char byte : character) add(byte_id(byte));
    return true;
  }

  token_id byte_id(char byte) const { return model_.bytes_[static_cast<std::uint8_t>(byte)]; }

  /// `after_known`: what goes before is not unknown itself.
  bool counts_as_unknown(bool after_known) const {
    return model_.rules_.unknown && (after_known || !model_.rules_.fuse_unknown);
  }

  void add(token_id symbol) {
    if (model_.has_seams_ && !symbols_.empty() &&
        model_.seams_.get(pack(symbols_.back(), symbol)) == pair_table::absent)
      merge();
    symbols_.push_back(symbol);
  }

  void merge() {
    if (symbols_.size() <= longest_short_word)
      merge_short();
    else
      merge_long_word(symbols_, model_.merges_, out_);
    symbols_.clear();
  }

  void merge_short() {
    std::array<std::uint64_t, longest_short_word> pairs;  // pairs[i] merges symbols i and i + 1
    auto count = symbols_.size();
    const auto look_up = [&](std::size_t i) { pairs[i] = model_.merges_.get(pack(symbols_[i], symbols_[i + 1])); };
    for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
    while (count > 1) {
      std::size_t best = 0;
      for (std::size_t i = 1; i + 1 < count; ++i)
        if (pairs[i] >> 32 < pairs[best] >> 32) best = i;
      if (pairs[best] == pair_table::absent) break;
      symbols_[best] = result_of(pairs[best]);
      std::copy(symbols_.begin() + best + 2, symbols_.begin() + count, symbols_.begin() + best + 1);
      if (best + 2 < count) std::copy(pairs.begin() + best + 2, pairs.begin() + count - 1, pairs.begin() + best + 1);
      --count;
      if (best > 0) look_up(best - 1);
      if (best + 1 < count) look_up(best);
    }
    out_.insert(out_.end(), symbols_.begin(), symbols_.begin() + count);
  }

  const bpe& model_;
  std::vector<token_id>& symbols_;
  std::vector<token_id>& out_;
};

void bpe::encode(std::string_view word, std::vector<token_id>& out) const {
  if (rules_.ignore_merges) {
    if (const auto whole = words_.find(word); whole != words_.end()) {
      out.push_back(whole->second);
      return;
    }
  }
  thread_local std::vector<token_id> symbols;
  symbols.clear();
  word_encoder(*this, symbols, out).encode(word);
}

}  // namespace troupe::detail
