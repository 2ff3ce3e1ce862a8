#include "base/sha256.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(sha256, knows_the_published_digests) {
  EXPECT_EQ(sha256().finish(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256().add("abc").finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256().add("a").add("bc").finish(), sha256().add("abc").finish());
}

TEST(sha256, fields_are_told_apart_by_their_lengths) {
  EXPECT_NE(sha256().add_field("a").add_field("bc").finish(), sha256().add_field("ab").add_field("c").finish());
}

}  // namespace
}  // namespace troupe
