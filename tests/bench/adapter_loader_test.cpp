#include "bench/adapter_loader.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.hpp"

namespace troupe::bench {
namespace {

std::shared_ptr<const lora_adapter> some_adapter() {
  adapter_file file;
  file.parts.push_back({.rank = 1, .scale = 1.0f, .a = std::vector<float>(16), .b = std::vector<float>(16)});
  return std::make_shared<lora_adapter>(file, 1);
}

adapter_version version(std::uint32_t number) {
  return adapter_version(number);
}

/// An engine's adapters, as they come and go.
struct recorder {
  explicit recorder(
      int room, adapter_loader::opener open = [](adapter_version) { return some_adapter(); })
      : bytes(static_cast<std::int64_t>(some_adapter()->bytes())), loader({.bytes = room * bytes}, std::move(open)) {}

  void exchange() {
    loader.exchange([&](adapter_version one) { return running.contains(one); },
                    {.add = [&](adapter_version one, auto adapter) { held[one] = std::move(adapter); },
                     .remove = [&](adapter_version one) { held.erase(one); },
                     .failed = [&](adapter_version one, const std::string& why) { failures[one] = why; }});
    EXPECT_LE(loader.residency().stats().resident_bytes, static_cast<std::int64_t>(held.size()) * bytes);
  }
  void bring(std::uint32_t number) {
    if (loader.is_ready(version(number))) return;
    exchange();
    while (loader.wait()) exchange();
  }

  std::int64_t bytes;
  std::map<adapter_version, std::shared_ptr<const lora_adapter>> held;
  std::map<adapter_version, std::string> failures;
  std::set<adapter_version> running;
  adapter_loader loader;
};

TEST(adapter_loader, brings_what_is_asked_for) {
  recorder all(2);
  ASSERT_FALSE(all.loader.declare(version(1), all.bytes));
  EXPECT_TRUE(all.loader.is_known(version(1)));
  EXPECT_FALSE(all.loader.is_known(version(2)));
  EXPECT_FALSE(all.loader.wait()) << "nothing is wanted";
  EXPECT_FALSE(all.loader.is_ready(version(1)));
  EXPECT_TRUE(all.loader.wait()) << "an exchange is wanted";
  all.bring(1);
  EXPECT_TRUE(all.loader.is_ready(version(1)));
  EXPECT_TRUE(all.held.contains(version(1)));
}

TEST(adapter_loader, holds_no_more_than_there_is_room_for) {
  recorder all(2);
  for (std::uint32_t i = 1; i <= 20; ++i) ASSERT_FALSE(all.loader.declare(version(i), all.bytes));
  for (std::uint32_t i = 1; i <= 20; ++i) {
    all.bring(i);
    ASSERT_TRUE(all.loader.is_ready(version(i)));
    ASSERT_LE(all.held.size(), 2u);
    all.running = {version(i)};
    all.exchange();
    all.running.clear();
  }
}

TEST(adapter_loader, says_why_one_could_not_be_read) {
  recorder all(2, [](adapter_version) -> std::shared_ptr<const lora_adapter> { refuse("no such folder"); });
  ASSERT_FALSE(all.loader.declare(version(1), all.bytes));
  all.bring(1);
  EXPECT_EQ(all.failures[version(1)], "no such folder");
  EXPECT_FALSE(all.loader.is_ready(version(1)));
  EXPECT_FALSE(all.loader.wait()) << "it is not tried again by itself";
}

TEST(adapter_loader, an_adapter_larger_than_declared_does_not_break_the_budget) {
  recorder all(1);
  ASSERT_FALSE(all.loader.declare(version(1), all.bytes - 1));
  all.bring(1);
  EXPECT_NE(all.failures[version(1)].find("were declared"), std::string::npos);
  EXPECT_TRUE(all.held.empty());
}

TEST(adapter_loader, ends_while_adapters_are_still_wanted) {
  recorder all(8);
  for (std::uint32_t i = 1; i <= 8; ++i) {
    ASSERT_FALSE(all.loader.declare(version(i), all.bytes));
    all.loader.is_ready(version(i));
  }
  all.exchange();
}

}  // namespace
}  // namespace troupe::bench
