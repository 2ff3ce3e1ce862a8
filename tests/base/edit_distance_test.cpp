#include "base/edit_distance.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(nearest, is_a_word_of_which_a_third_of_the_letters_is_another) {
  constexpr std::array<std::string_view, 4> words{"replicas", "host", "port", "layers"};
  EXPECT_EQ(nearest("repilcas", words), "replicas");
  EXPECT_EQ(nearest("layer", words), "layers");
  EXPECT_EQ(nearest("hosts", words), "host");
  EXPECT_EQ(nearest("pot", words), "port");
  EXPECT_EQ(nearest("prot", words), "port") << "two letters that are swapped are one change";
  for (const char* word : {"", "list", "pots", "xyzzy"}) EXPECT_EQ(nearest(word, words), "") << word;
}

TEST(nearest, is_not_looked_for_where_a_word_is_very_long) {
  const std::string longest(64, 'x'), longer = longest + "y";
  const std::array<std::string_view, 1> words{longest};
  EXPECT_EQ(nearest(longest, words), longest);
  EXPECT_EQ(nearest(longer, words), "");
}

}  // namespace
}  // namespace troupe
