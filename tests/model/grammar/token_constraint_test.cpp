#include "model/grammar/token_constraint.hpp"
#include "base/to_size.hpp"

#include <gtest/gtest.h>

#include "tests/model/grammar/constrained_text.hpp"

namespace troupe {
namespace {

TEST(token_tree, spells_nothing_by_tokens_that_the_model_lacks) {
  const auto vocabulary = std::make_shared<test::byte_vocabulary>(false);
  const auto last = static_cast<std::uint8_t>(vocabulary->bytes_of(vocabulary->size() - 1).front());
  EXPECT_TRUE(token_tree(vocabulary, vocabulary->size()).alphabet()[last]);
  EXPECT_FALSE(token_tree(vocabulary, vocabulary->size() - 1).alphabet()[last]);
}

TEST(token_masks, allow_a_token_where_its_bytes_are_allowed) {
  std::mt19937 random(5);
  const auto tokens = test::byte_tokens();
  const output_constraint schema{constraint_kind::json_schema,
                                 R"({"type":"object","properties":{"name":{"type":"string","maxLength":9},"x":{}}})"};
  token_constraint under(schema, tokens);
  text_automaton plain(compile(schema, tokens->alphabet()));
  std::string text;
  auto state = under.start();
  auto same = plain.start();
  for (int step = 0; step < 300; ++step) {
    const token_mask mask = under.allowed(state);
    std::vector<token_id> allowed;
    for (token_id token = 0; token < tokens->vocab_size(); ++token) {
      auto next = same;
      for (const char byte : tokens->bytes_of(token)) next = plain.next(next, static_cast<std::uint8_t>(byte));
      const bool wanted = token > 1 && !tokens->bytes_of(token).empty() && next != text_automaton::dead;
      ASSERT_EQ(mask[to_size(token) / 64] >> (token % 64) & 1, wanted) << text << " and " << token;
      if (wanted) allowed.push_back(token);
    }
    if (allowed.empty()) break;
    const token_id token = allowed[random() % allowed.size()];
    text += tokens->bytes_of(token);
    state = under.after(state, token);
    for (const char byte : tokens->bytes_of(token)) same = plain.next(same, static_cast<std::uint8_t>(byte));
  }
  EXPECT_FALSE(text.empty());
}

TEST(token_masks, go_on_by_single_bytes_where_a_text_can_be_read_in_very_many_ways) {
  std::string expression;
  for (int i = 0; i < 300; ++i) expression += (i == 0 ? "" : "|") + ("[ -~]*[x}]" + std::to_string(i));
  const auto tokens = test::byte_tokens();
  token_constraint under({constraint_kind::regex, expression}, tokens);
  auto state = under.start();
  const token_mask mask = under.allowed(state);
  for (token_id token = 0; token < tokens->vocab_size(); ++token) {
    const std::string_view bytes = tokens->bytes_of(token);
    const bool wanted = token > 1 && bytes.size() == 1 && ' ' <= bytes[0] && bytes[0] <= '~';
    ASSERT_EQ(mask[to_size(token) / 64] >> (token % 64) & 1, wanted) << bytes;
  }
  std::mt19937 random(3);
  EXPECT_TRUE(test::random_text(under, *tokens, random));
}

output_constraint choice_of(int number) {
  return {constraint_kind::regex, "[a-z]{1,40}" + std::to_string(number)};
}

TEST(constraint_store, makes_each_once_for_as_long_as_it_is_in_use) {
  constraint_store store(test::byte_tokens(), 1);
  const auto first = store.get(choice_of(0)), second = store.get(choice_of(1));
  for (int number = 2; number < 100; ++number) (void)store.get(choice_of(number));
  EXPECT_EQ(store.get(choice_of(0)), first);
  EXPECT_EQ(store.get(choice_of(1)), second);
}

TEST(constraint_store, bounds_what_those_in_use_have_found_out_and_they_find_it_again) {
  token_constraint one(choice_of(0), test::byte_tokens());
  auto begun = one.start();
  (void)one.allowed(begun);
  const std::size_t most = 20 * one.size();
  constraint_store store(test::byte_tokens(), most);
  std::vector<std::shared_ptr<token_constraint>> in_use;
  for (int number = 0; number < 40; ++number) in_use.push_back(store.get(choice_of(number)));
  std::vector<token_mask> masks;
  for (const auto& each : in_use) {
    auto state = each->start();
    masks.push_back(each->allowed(state));
  }
  const auto sum = [&] {
    std::size_t bytes = 0;
    for (const auto& each : in_use) bytes += each->size();
    return bytes;
  };
  ASSERT_GT(sum(), most);
  store.keep_within_bounds();
  EXPECT_LE(sum(), most);
  EXPECT_GT(sum(), 0u) << "no more than it must";
  for (std::size_t i = 0; i < in_use.size(); ++i) {
    auto state = in_use[i]->start();
    EXPECT_EQ(in_use[i]->allowed(state), masks[i]);
  }
}

}  // namespace
}  // namespace troupe
