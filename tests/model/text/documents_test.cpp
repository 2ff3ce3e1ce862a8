#include "model/text/documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

std::vector<std::string_view> texts_in(std::string_view text) {
  std::vector<std::string_view> texts;
  for (const text_document& each : documents_of(text)) texts.push_back(each.text);
  return texts;
}

TEST(documents, are_without_the_line_breaks_around_them) {
  using testing::ElementsAre;
  EXPECT_THAT(texts_in("\n\na\nb\n<|endoftext|>\nc\n"), ElementsAre("a\nb", "c"));
  EXPECT_THAT(texts_in("\r\na\r\nb\r\n<|endoftext|>\r\nc<|endoftext|>\r\n"), ElementsAre("a\r\nb", "c"))
      << "as Windows writes them";
  EXPECT_THAT(texts_in("\n<|endoftext|>\r\n\r\n"), ElementsAre());
}

TEST(documents, end_where_a_separator_came_after_them) {
  const auto found = documents_of("a<|endoftext|>\r\nb\r\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].ends);
  EXPECT_FALSE(found[1].ends);
}

}  // namespace
}  // namespace troupe
