#include "model/engine/sampling/answer_form.hpp"

#include <gtest/gtest.h>

#include "tests/model/grammar/constrained_text.hpp"

namespace troupe {
namespace {

constexpr token_id end_token = test::byte_vocabulary::end;

token_id token_of(char byte) {
  return 2 + static_cast<unsigned char>(byte);
}

class a_form : public testing::Test {
 protected:
  std::shared_ptr<const token_tree> tokens_ = test::byte_tokens(false);
  std::shared_ptr<token_constraint> constraint_ =
      std::make_shared<token_constraint>(output_constraint{constraint_kind::regex, "(ab){1,3}c?"}, tokens_);

  answer_form form_of(std::span<const token_id> written, const sampling_params& params = {},
                      std::vector<token_id> ends = {end_token}) {
    return {constraint_, params, std::move(ends), written};
  }
  /// What may come next; '$' is the end.
  static std::string allowed_by(answer_form& form, std::span<const token_id> written) {
    std::string all;
    const auto mask = form.allowed(written);
    for (std::size_t token = 0; token < mask.size() * 64; ++token)
      if (mask[token / 64] >> (token % 64) & 1) all += token == end_token ? '$' : static_cast<char>(token - 2);
    return all;
  }
};

TEST_F(a_form, ends_by_a_token_that_has_a_text_where_it_is_complete_or_the_request_names_it) {
  const token_id named = token_of('a');
  answer_form form = form_of({}, {}, {named});
  EXPECT_EQ(allowed_by(form, {}), "");
  sampling_params stops;
  stops.stop_tokens = {named};
  answer_form stopped = form_of({}, stops, {named});
  EXPECT_EQ(allowed_by(stopped, {}), "a");
}

TEST_F(a_form, ends_only_where_it_is_complete) {
  std::vector<token_id> written;
  answer_form form = form_of(written);
  EXPECT_EQ(allowed_by(form, written), "a");
  for (const char byte : {'a', 'b'}) {
    written.push_back(token_of(byte));
    EXPECT_TRUE(form.add(written));
  }
  EXPECT_EQ(allowed_by(form, written), "$ac");
  written.push_back(token_of('c'));
  EXPECT_FALSE(form.add(written)) << "nothing can follow";
  EXPECT_TRUE(form.is_complete());
}

TEST_F(a_form, goes_on_alike_whenever_what_was_found_out_is_forgotten) {
  for (const bool before_adding : {false, true}) {
    std::vector<token_id> written;
    answer_form form = form_of(written);
    std::string seen;
    for (const char byte : std::string("ababab")) {
      if (!before_adding) constraint_->forget();
      seen += allowed_by(form, written) + ' ';
      written.push_back(token_of(byte));
      if (before_adding) constraint_->forget();
      EXPECT_TRUE(form.add(written));
    }
    EXPECT_EQ(seen + allowed_by(form, written), "a b $ac b $ac b $c");
  }
}

TEST_F(a_form, goes_on_where_the_answer_was_elsewhere) {
  const std::vector<token_id> written = {token_of('a'), token_of('b'), token_of('a')};
  answer_form form = form_of(written);
  EXPECT_EQ(allowed_by(form, written), "b");
}

}  // namespace
}  // namespace troupe
