#include "model/grammar/token_constraint.hpp"
#include "base/to_size.hpp"

#include <fmt/format.h>
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

/// All texts of up to seven letters out of three.
class wide_vocabulary final : public test::listed_tokens {
 public:
  wide_vocabulary() {
    texts_ = {"</s>", "<pad>"};
    add_bytes();
    std::vector<std::string> shorter = {""};
    for (int length = 1; length <= 7; ++length) {
      std::vector<std::string> longer;
      for (const std::string& text : shorter)
        for (const char letter : {'e', 'x', 't'}) longer.push_back(text + letter);
      if (length > 1) texts_.insert(texts_.end(), longer.begin(), longer.end());
      shorter = std::move(longer);
    }
  }
  bool is_special(token_id token) const override { return token < 2; }
  std::optional<token_id> eos() const override { return 0; }
};

/// Each letter e begins 40 ways more, so that no two texts are in one state.
class constraint_of_many_ways : public testing::Test {
 protected:
  static std::string expression() {
    std::string patterns;
    for (int i = 100; i < 140; ++i) patterns += fmt::format("{}e.{{{}}}t", i == 100 ? "" : "|", i);
    return fmt::format(".*({}).*", patterns);
  }
  void write(const char* letters) {
    for (; *letters; ++letters)
      for (token_id token = 2; token < 2 + 256; ++token)
        if (tokens_->bytes_of(token) == std::string_view(letters, 1)) state_ = under_.after(state_, token);
  }

  std::shared_ptr<const wide_vocabulary> vocabulary_ = std::make_shared<wide_vocabulary>();
  std::shared_ptr<const token_tree> tokens_ = std::make_shared<token_tree>(vocabulary_, vocabulary_->size());
  token_constraint under_{{constraint_kind::regex, expression()}, tokens_};
  token_constraint::state state_ = under_.start();
};

TEST_F(constraint_of_many_ways, goes_on_by_single_bytes) {
  write("eexeexeexeex");
  const token_mask mask = under_.allowed(state_);
  for (token_id token = 2; token < tokens_->vocab_size(); ++token) {
    const std::string_view bytes = tokens_->bytes_of(token);
    if (bytes.front() != 'e' && bytes.front() != 'x' && bytes.front() != 't') continue;
    ASSERT_EQ(mask[to_size(token) / 64] >> (token % 64) & 1, bytes.size() == 1) << bytes;
  }
  write(std::string(120, 'x').c_str());
  EXPECT_FALSE(under_.is_complete(state_));
  write("t");
  EXPECT_TRUE(under_.is_complete(state_));
}

TEST_F(constraint_of_many_ways, finds_out_little_for_each_token) {
  for (int i = 0; i < 20; ++i) {
    const std::size_t before = under_.size();
    (void)under_.allowed(state_);
    EXPECT_LT(under_.size(), before + (std::size_t{2} << 20)) << i;
    write("ex");
  }
}

/// Each text of six letters has a rule of its own, and behind every letter many empty alternatives lead to one place.
TEST(constraint_of_many_places, goes_on_by_single_bytes) {
  std::string grammar = "root ::= n0\nr ::= \"\"";
  for (int i = 0; i < 1900; ++i) grammar += " | \"\"";
  constexpr int rules = 364;
  const auto then = [](int child) { return child < rules ? fmt::format("n{}", child) : std::string("\"!\""); };
  for (int i = 0; i < rules; ++i)
    grammar += fmt::format("\nn{} ::= \"e\" r {} | \"x\" r {} | \"t\" r {}", i, then(3 * i + 1), then(3 * i + 2),
                           then(3 * i + 3));
  const auto vocabulary = std::make_shared<wide_vocabulary>();
  token_constraint under({constraint_kind::grammar, grammar},
                         std::make_shared<token_tree>(vocabulary, vocabulary->size()));
  auto state = under.start();
  const token_mask mask = under.allowed(state);
  for (token_id token = 2; token < vocabulary->size(); ++token) {
    const std::string_view bytes = vocabulary->bytes_of(token);
    if (bytes.front() != 'e' && bytes.front() != 'x' && bytes.front() != 't') continue;
    ASSERT_EQ(mask[to_size(token) / 64] >> (token % 64) & 1, bytes.size() == 1) << bytes;
  }
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

TEST(constraint_store, counts_the_constraints_themselves) {
  const auto tokens = test::byte_tokens();
  const auto large = [](int number) {
    std::string text = "[\"" + std::to_string(number) + "\"";
    for (int i = 0; i < 1000; ++i) text += ",\"" + std::to_string(i * 7919 + number) + " is a choice\"";
    return output_constraint{constraint_kind::choice, text + "]"};
  };
  const std::size_t one = token_constraint(large(0), tokens).size();
  EXPECT_GT(one, large(0).bytes() + 10'000 * sizeof(grammar_edge));
  constraint_store store(tokens, 3 * one);
  const std::weak_ptr<token_constraint> first = store.get(large(1));
  (void)store.get(large(2));
  EXPECT_FALSE(first.expired());
  for (int number = 3; number < 6; ++number) (void)store.get(large(number));
  EXPECT_TRUE(first.expired());
}

TEST(constraint_store, leaves_those_in_use_what_they_found_out_however_large_they_are) {
  constraint_store store(test::byte_tokens(), 4000);
  const auto constraint = store.get({constraint_kind::regex, "[a-z]{3}" + std::string(1000, 'x')});
  ASSERT_GT(constraint->lasting_size(), 4000u);
  auto state = constraint->start();
  (void)constraint->allowed(state);
  const std::size_t before = constraint->size();
  store.keep_within_bounds();
  EXPECT_EQ(constraint->size(), before);
}

TEST(constraint_store, bounds_what_those_in_use_have_found_out_and_they_find_it_again) {
  token_constraint one(choice_of(0), test::byte_tokens());
  auto begun = one.start();
  (void)one.allowed(begun);
  const std::size_t most = 30 * one.size();
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
  EXPECT_GT(sum() + 2 * one.size(), most) << "no more than it must";
  for (std::size_t i = 0; i < in_use.size(); ++i) {
    auto state = in_use[i]->start();
    EXPECT_EQ(in_use[i]->allowed(state), masks[i]);
  }
}

}  // namespace
}  // namespace troupe
