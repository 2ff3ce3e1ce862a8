// Whatever is written under a schema is JSON that the schema accepts: random schemas, random tokens.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/model/grammar/constrained_text.hpp"
#include "tests/model/grammar/random_schema.hpp"
#include "tests/model/grammar/schema_validator.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

TEST(schemas, are_satisfied_by_every_text_that_is_written_under_them) {
  std::mt19937 random(11);
  const auto tokens = test::byte_tokens();
  int ended = 0, refused = 0;
  for (int i = 0; i < 1000; ++i) {
    const json schema = test::random_schema(random);
    std::optional<token_constraint> under;
    try {
      under.emplace(output_constraint{constraint_kind::json_schema, schema.dump()}, tokens);
    } catch (const input_error&) {
      ++refused;  // choices that cannot be told apart, or nothing that fits
      continue;
    }
    for (int k = 0; k < 2; ++k) {
      const auto text = test::random_text(*under, *tokens, random);
      ASSERT_TRUE(text) << "no end under " << schema;
      const json value = json::parse(*text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << *text << " under " << schema;
      ASSERT_TRUE(test::satisfies(value, schema, schema)) << *text << " under " << schema;
      ++ended;
    }
  }
  EXPECT_GT(ended, 1600);
  EXPECT_LT(refused, 200);
}

TEST(schemas, let_any_object_be_written_as_json_object) {
  std::mt19937 random(12);
  const auto tokens = test::byte_tokens();
  token_constraint under({constraint_kind::json_object, {}}, tokens);
  for (int i = 0; i < 200; ++i) {
    const auto text = test::random_text(under, *tokens, random);
    ASSERT_TRUE(text);
    EXPECT_TRUE(json::parse(*text, nullptr, false).is_object()) << *text;
  }
}

}  // namespace
}  // namespace troupe
