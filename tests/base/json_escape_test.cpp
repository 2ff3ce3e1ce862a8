#include "base/json_escape.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(json_escape, writes_what_cannot_stand_between_quotes) {
  EXPECT_EQ(json_escape('"'), R"(\")");
  EXPECT_EQ(json_escape('\\'), R"(\\)");
  EXPECT_EQ(json_escape('\b'), R"(\b)");
  EXPECT_EQ(json_escape('\f'), R"(\f)");
  EXPECT_EQ(json_escape('\x1f'), R"(\u001f)");
  EXPECT_EQ(json_escape(0xd83d), R"(\ud83d)");
  for (const char32_t plain : {U' ', U'/', U'\x7f', U'\xe9'}) EXPECT_FALSE(needs_json_escape(plain));
  for (const char32_t special : {U'\0', U'\x1f', U'"', U'\\'}) EXPECT_TRUE(needs_json_escape(special));
}

}  // namespace
}  // namespace troupe
