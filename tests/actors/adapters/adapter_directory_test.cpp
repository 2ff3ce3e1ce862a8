#include "actors/adapters/adapter_directory.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(adapter_directory, answers_from_the_newest_snapshot) {
  adapter_directory directory;
  EXPECT_EQ(directory.resolve(""), no_adapter);
  EXPECT_EQ(directory.resolve("pricing"), std::nullopt);
  const auto before = directory.read();
  adapter_directory::snapshot now;
  now.names["pricing"] = adapter_version(3);
  now.versions[adapter_version(3)].full_name = "pricing@1";
  directory.publish(std::move(now));
  EXPECT_EQ(directory.resolve("pricing"), adapter_version(3));
  EXPECT_EQ(directory.find(adapter_version(3))->full_name, "pricing@1");
  EXPECT_TRUE(before->names.empty()) << "a snapshot never changes";
}

}  // namespace
}  // namespace troupe
