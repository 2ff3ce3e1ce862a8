#include "cluster/journal/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/journal/journal_fixture.hpp"

namespace troupe {
namespace {

using journal_fault = journal_error::reason;

class journal_records : public journal_fixture {};

TEST_F(journal_records, keeps_events_in_order_and_the_newest_of_them) {
  options.max_events = 10;
  open();
  ASSERT_TRUE(book->create_job(spec_of("ft", 0, "fine-tune")).ok());
  for (int i = 1; i <= 15; ++i) {
    const auto number = book->append_event("ft", i % 5 == 0 ? "checkpoint" : "metrics", std::to_string(i));
    EXPECT_EQ(*number, static_cast<std::uint64_t>(i));
  }
  const auto events = book->events("ft", 0, 100);
  ASSERT_EQ(events.size(), 10u);
  EXPECT_EQ(events.front().number, 6u);
  EXPECT_EQ(book->events("ft", 12, 2).front().text, "13");
  EXPECT_EQ(book->events("ft", 12, 2).size(), 2u);
  EXPECT_EQ(book->last_event("ft", "checkpoint")->text, "15");
  EXPECT_FALSE(book->last_event("ft", "message"));
  EXPECT_EQ(book->append_event("no", "message", "{}").error().why, journal_fault::unknown);
}

TEST_F(journal_records, refuses_events_that_are_too_large_and_then_takes_none_of_them) {
  options.max_event_bytes = 100;
  open();
  ASSERT_TRUE(book->create_job(spec_of("ft", 0, "fine-tune")).ok());
  EXPECT_EQ(book->append_event("ft", std::string(65, 'k'), "{}").error().why, journal_fault::invalid);
  EXPECT_EQ(book->append_event("ft", "", "{}").error().why, journal_fault::invalid);
  const std::string too_long(101, 'x');
  const event_record events[] = {{"message", "{}"}, {"message", too_long}};
  EXPECT_EQ(book->append_events("ft", events).error().why, journal_fault::too_large);
  EXPECT_TRUE(book->events("ft", 0, 10).empty());
  EXPECT_EQ(*book->append_event("ft", std::string(64, 'k'), std::string(100, 'x')), 1u);
}

TEST_F(journal_records, finds_the_events_before_a_number) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("f", 0, "fine-tune")).ok());
  for (int i = 1; i <= 5; ++i) (void)book->append_event("f", "metrics", std::to_string(i));
  const auto before = book->events_before("f", 5, 2);
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(before[0].text, "4");
  EXPECT_EQ(before[1].number, 3u);
  EXPECT_TRUE(book->events_before("f", 1, 2).empty());
}

TEST_F(journal_records, takes_several_events_at_once) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("f", 0, "fine-tune")).ok());
  const std::vector<event_record> events{{"metrics", "1"}, {"metrics", "2"}, {"message", "3"}};
  EXPECT_EQ(*book->append_events("f", events), 3u);
  EXPECT_EQ(*book->append_event("f", "metrics", "4"), 4u);
  const auto all = book->events("f", 1, 10);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].kind, "message");
  EXPECT_EQ(all[2].text, "4");
}

/// As after a commit that failed and yet reached the disk: the number was free for the next adapter.
TEST_F(journal_records, keeps_of_two_adapters_with_one_number_the_later_one_whole) {
  open();
  adapter_entry entry{.version = adapter_version{1}, .ordinal = 1, .spec = {"first", "a", 9, 8, model_id{1}}};
  book->save({{entry}, {}});
  entry.spec = {"second", "b", 7, 4, model_id{1}};
  book->save({{entry}, {}});
  const auto saved = book->load_catalogue().entries;
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved.front().spec.name, "second");
  EXPECT_EQ(saved.front().spec.sha256, "b");
  EXPECT_EQ(saved.front().spec.rank, 4u);
}

TEST_F(journal_records, keeps_the_adapter_catalogue) {
  const adapter_catalogue::options base{"llama", model_id{~0ull}, 100};
  open();
  adapter_catalogue adapters(base, book->load_catalogue());
  for (const char content : {'a', 'b', 'c'}) {
    const auto entry = adapters.publish({"pricing", std::string(64, content), 99, 8, model_id{~0ull}});
    ASSERT_TRUE(entry.ok());
    book->save(adapters.take_changes());
    if (content != 'c') adapters.set_ready(entry->version);
  }
  adapters.set_failed(adapter_version{3}, "torn");
  (void)adapters.rollback("pricing");
  book->save(adapters.take_changes());
  open();
  const auto saved = book->load_catalogue();
  EXPECT_EQ(saved.next_version, 4u);
  adapter_catalogue again(base, saved);
  EXPECT_EQ(*again.resolve("pricing"), adapter_version{1});
  EXPECT_EQ(again.find(adapter_version{3})->error, "torn");
  EXPECT_EQ(again.find(adapter_version{2})->spec.base, model_id{~0ull});
  EXPECT_EQ(again.publish({"pricing", std::string(64, 'd'), 1, 8, model_id{~0ull}})->full_name(), "pricing@4");
  adapter_catalogue requantized({"llama", model_id{7}, 100}, saved);
  requantized.set_fits(adapter_version{2}, 50);
  book->save(requantized.take_changes());
  const adapter_catalogue after(base, book->load_catalogue());
  EXPECT_EQ(after.find(adapter_version{2})->spec.base, model_id{7});
  EXPECT_EQ(after.find(adapter_version{2})->spec.bytes, 50u);
}

TEST_F(journal_records, knows_whose_an_adapters_name_is) {
  open();
  EXPECT_EQ(book->owner_of_adapter("red"), std::nullopt) << "nobody's";
  book->save({{{.version = adapter_version{1}, .ordinal = 1, .spec = {"blue", "a", 9, 8, model_id{1}}}}, {}});
  catalogue_records forgotten;
  forgotten.pointers.push_back({"grey", 0, 1, 2});
  book->save(forgotten);
  book->give_adapter("red", "ann");
  book->give_adapter("red", "bob");
  open();
  EXPECT_EQ(book->owner_of_adapter("red"), "ann") << "the first has it";
  for (const char* published : {"blue", "grey"}) EXPECT_EQ(book->owner_of_adapter(published), "") << published;
}

TEST_F(journal_records, forgets_versions_that_the_catalogue_forgot) {
  const adapter_catalogue::options base{"llama", model_id{5}, 100, 16, 0};
  open();
  adapter_catalogue adapters(base);
  const auto version = adapters.publish({"pricing", std::string(64, 'a'), 1, 8, model_id{5}})->version;
  adapters.set_ready(version);
  book->save(adapters.take_changes());
  EXPECT_EQ(book->load_catalogue().entries.size(), 1u);
  (void)adapters.unload("pricing");
  (void)adapters.forget_unloaded([](adapter_version) { return false; });
  book->save(adapters.take_changes());
  open();
  const auto saved = book->load_catalogue();
  EXPECT_TRUE(saved.entries.empty());
  adapter_catalogue again(base, saved);
  const auto next = again.publish({"pricing", std::string(64, 'a'), 1, 8, model_id{5}});
  EXPECT_EQ(next->full_name(), "pricing@2") << "an ordinal is not given again";
  EXPECT_EQ(next->version, adapter_version{2});
}

}  // namespace
}  // namespace troupe
