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

TEST(adapter_directory, has_the_list_of_names_ready) {
  adapter_directory directory;
  adapter_directory::snapshot now;
  now.names = {{"pricing@1", adapter_version(3)},
               {"pricing", adapter_version(3)},
               {"base:pricing", adapter_version(3)},
               {"base", no_adapter}};
  now.versions[adapter_version(3)] = {.full_name = "pricing@1", .sha256 = {}, .files = {}, .created = 5};
  directory.publish(std::move(now));
  const std::vector<listed_adapter> wanted{{"pricing", "pricing@1", 5}, {"pricing@1", "pricing@1", 5}};
  EXPECT_EQ(directory.read()->listed, wanted);
}

TEST(adapter_directory, knows_which_versions_are_held) {
  const adapter_directory directory;
  auto first = directory.hold(adapter_version(3)), second = directory.hold(adapter_version(3));
  EXPECT_FALSE(directory.is_held(adapter_version(4)));
  first.reset();
  EXPECT_TRUE(directory.is_held(adapter_version(3)));
  second.reset();
  EXPECT_FALSE(directory.is_held(adapter_version(3)));
}

}  // namespace
}  // namespace troupe
