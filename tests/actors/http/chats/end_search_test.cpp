#include "actors/http/chats/end_search.hpp"

#include <gtest/gtest.h>

namespace troupe::test {
namespace {

/// What was read before is overwritten, as nobody looks at it again.
TEST(end_searches, read_nothing_twice) {
  const std::string_view none;
  end_search value;
  EXPECT_EQ(value.of_value(R"({"a}\)"), none.npos);
  EXPECT_EQ(value.of_value(R"(}}}}}"}", [)"), none.npos) << "a text, with a quote in it";
  EXPECT_EQ(value.of_value(R"(}}}}}}}}}}}]} more)"), 13u);

  end_search outside;
  EXPECT_EQ(outside.outside_texts(R"({"a": "</x> <)", "</x>"), none.npos);
  EXPECT_EQ(outside.outside_texts(R"(</x></x></x><">})", "</x>"), none.npos);
  EXPECT_EQ(outside.outside_texts(R"(</x></x></x><">}</x>)", "</x>"), 16u);

  end_search text;
  EXPECT_EQ(text.of_text("one </", "</x>"), none.npos);
  EXPECT_EQ(text.of_text("</x></", "</x>"), none.npos) << "but for what may be the mark's beginning";

  end_search marked;
  EXPECT_EQ(marked.outside_quotes("{a:<\">b</x> <", "<\">", "</x>"), none.npos);
  EXPECT_EQ(marked.outside_quotes("</x></x></x><\">}</", "<\">", "</x>"), none.npos);
  EXPECT_EQ(marked.outside_quotes("</x></x></x><\">}</x>", "<\">", "</x>"), 16u);
}

TEST(end_searches, find_marks_that_come_in_pieces) {
  const std::string_view all = R"({"a": "</x>"}</x>)";
  for (const bool is_json : {false, true}) {
    end_search search;
    std::size_t found = all.npos, come = 0;
    while (found == all.npos && come < all.size()) {
      ++come;
      found = is_json ? search.outside_texts(all.substr(0, come), "</x>") : search.of_text(all.substr(0, come), "</x>");
    }
    EXPECT_EQ(found, is_json ? 13u : 7u);
    EXPECT_EQ(come, found + 4) << "as soon as it is whole";
  }
}

}  // namespace
}  // namespace troupe::test
