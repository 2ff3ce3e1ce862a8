#include <algorithm>

#include "base/to_size.hpp"
#include "model/tokenizer/bpe.hpp"
#include "model/tokenizer/bpe_heap.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe::detail {
namespace {

using test::from_json;

/// Merges the lowest rank, leftmost first, by looking at every pair each time.
std::vector<token_id> merge_plainly(std::vector<token_id> symbols, const std::vector<bpe_merge>& merges) {
  for (;;) {
    const bpe_merge* best = nullptr;
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      for (const auto& merge : merges)
        if (merge.left == symbols[i] && merge.right == symbols[i + 1] && (!best || merge.rank < best->rank)) {
          best = &merge;
          place = i;
        }
    if (!best) return symbols;
    symbols[place] = best->result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

struct random_model {
  std::vector<std::string> tokens = {"a", "b", "c"};
  std::vector<bpe_merge> merges;

  explicit random_model(std::mt19937& random) {
    for (int tries = 0; tries < 30; ++tries) {
      const auto left = static_cast<token_id>(random() % tokens.size());
      const auto right = static_cast<token_id>(random() % tokens.size());
      const auto whole = tokens[to_size(left)] + tokens[to_size(right)];
      if (whole.size() > 9 || std::find(tokens.begin(), tokens.end(), whole) != tokens.end()) continue;
      merges.push_back({left, right, static_cast<token_id>(tokens.size()), static_cast<std::int32_t>(merges.size())});
      tokens.push_back(whole);
    }
  }
};

TEST(bpe, merges_words_of_any_length_in_the_order_of_the_ranks) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const random_model model(random);
    const bpe characters(model.tokens, model.merges, {});
    bpe_rules rules;
    rules.byte_level = true;
    const bpe bytes(model.tokens, model.merges, rules);
    std::string word;
    std::vector<token_id> symbols;
    for (auto n = random() % 150; n > 0; --n) {
      symbols.push_back(static_cast<token_id>(random() % 3));
      word += static_cast<char>('a' + symbols.back());
    }
    const auto expected = merge_plainly(symbols, model.merges);
    std::vector<token_id> by_characters, by_bytes;
    characters.encode(word, by_characters);
    bytes.encode(word, by_bytes);
    EXPECT_EQ(by_characters, expected) << word;
    EXPECT_EQ(by_bytes, expected) << word;
  }
}

TEST(bpe, merges_the_leftmost_of_equal_pairs) {
  pair_table merges(4);
  merges.put(pack(0, 0), pack(0, 1));
  std::vector<token_id> out;
  merge_long_word({0, 0, 0}, merges, out);
  EXPECT_EQ(out, (std::vector<token_id>{1, 0}));
}

TEST(bpe, takes_a_whole_word_that_is_a_token_where_merges_are_ignored) {
  bpe_rules rules;
  rules.ignore_merges = true;
  const bpe model({"a", "b", "c", "abc"}, {}, rules);
  std::vector<token_id> out;
  model.encode("abc", out);
  model.encode("abca", out);
  EXPECT_EQ(out, (std::vector<token_id>{3, 0, 1, 2, 0}));
}

TEST(bpe, spells_unknown_characters_by_bytes_or_by_the_unknown_token) {
  bpe_rules rules;
  rules.byte_fallback = true;
  rules.unknown = 0;
  const std::vector<std::string> tokens = {"<unk>", "a", "<0xC3>", "<0xA9>"};
  std::vector<token_id> out;
  bpe(tokens, {}, rules).encode("a\u00e9\u6c34\u6c34", out);
  EXPECT_EQ(out, (std::vector<token_id>{1, 2, 3, 0, 0}));
  rules.fuse_unknown = true;
  out.clear();
  bpe(tokens, {}, rules).encode("a\u00e9\u6c34\u6c34", out);
  EXPECT_EQ(out, (std::vector<token_id>{1, 2, 3, 0}));
}

TEST(bpe, writes_the_unknown_token_for_bytes_that_are_none) {
  bpe_rules rules;
  rules.byte_level = true;
  rules.unknown = 0;
  const std::vector<std::string> tokens = {"<unk>", "a", "b"};
  std::vector<token_id> out;
  bpe(tokens, {}, rules).encode("xxab\n", out);
  EXPECT_EQ(out, (std::vector<token_id>{0, 0, 1, 2, 0}));
  rules.fuse_unknown = true;
  out.clear();
  bpe(tokens, {}, rules).encode("xxab\n", out);
  EXPECT_EQ(out, (std::vector<token_id>{0, 1, 2, 0}));
  rules.unknown.reset();
  out.clear();
  bpe(tokens, {}, rules).encode("xxab\n", out);
  EXPECT_EQ(out, (std::vector<token_id>{1, 2}));
}

TEST(pair_table, finds_what_was_put_and_nothing_else) {
  pair_table table;
  for (int i = 0; i < 1000; ++i) table.put(pack(i, i * 7), static_cast<std::uint64_t>(i));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(table.get(pack(i, i * 7)), static_cast<std::uint64_t>(i));
  for (int i = 1; i < 1000; ++i) EXPECT_EQ(table.get(pack(i, i * 7 + 1)), pair_table::absent);
}

}  // namespace
}  // namespace troupe::detail
