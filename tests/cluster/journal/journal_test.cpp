#include "cluster/journal/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <random>

#include "base/error.hpp"
#include "tests/cluster/journal/journal_fixture.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using journal_fault = journal_error::reason;
using testing::ElementsAre;
using testing::HasSubstr;

class the_journal : public journal_fixture {
 protected:
  /// Of a table. Closes the journal.
  int rows_of(const std::string& table) {
    book.reset();
    sqlite3* raw = nullptr;
    EXPECT_EQ(sqlite3_open(options.file.c_str(), &raw), SQLITE_OK);
    int count = -1;
    const auto take = [](void* into, int, char** values, char**) {
      return *static_cast<int*>(into) = std::stoi(values[0]), 0;
    };
    EXPECT_EQ(sqlite3_exec(raw, ("SELECT count(*) FROM " + table).c_str(), take, &count, nullptr), SQLITE_OK);
    sqlite3_close(raw);
    return count;
  }
};

std::vector<std::uint64_t> indexes_of(const auto& lines) {
  std::vector<std::uint64_t> indexes;
  for (const auto& line : lines) indexes.push_back(line.index);
  return indexes;
}

TEST_F(the_journal, accepts_a_job_when_all_its_lines_are_there) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 3)).ok());
  EXPECT_EQ(book->seal("j1").error().why, journal_fault::wrong_state);
  const auto lines = lines_of(3);
  EXPECT_EQ(*book->add_lines("j1", 0, std::span(lines).first(2)), 2u);
  EXPECT_EQ(*book->add_lines("j1", 2, std::span(lines).subspan(2)), 3u);
  const auto job = book->seal("j1");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state, job_state::queued);
  EXPECT_EQ(job->spec.options, R"({"max_tokens":8})");
  EXPECT_EQ(job->created, seconds);
  open();
  ASSERT_EQ(book->unfinished().size(), 1u);
  EXPECT_EQ(book->unfinished_lines("j1", 0, 100).size(), 3u);
  EXPECT_EQ(book->unfinished_lines("j1", 1, 1).front().text, lines[1]);
}

TEST_F(the_journal, answers_what_is_repeated_with_what_there_is) {
  open();
  accepted("j1", 4);
  EXPECT_EQ(book->create_job(spec_of("j1", 4))->state, job_state::queued);
  EXPECT_EQ(*book->add_lines("j1", 0, lines_of(4)), 4u);
  EXPECT_EQ(book->seal("j1")->state, job_state::queued);
  EXPECT_EQ(book->create_job(spec_of("j1", 5)).error().why, journal_fault::conflict);
  EXPECT_EQ(book->list().size(), 1u);
}

TEST_F(the_journal, takes_lines_again_that_overlap_and_notices_other_content) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 4)).ok());
  auto lines = lines_of(4);
  ASSERT_TRUE(book->add_lines("j1", 0, std::span(lines).first(2)).ok());
  EXPECT_EQ(*book->add_lines("j1", 1, std::span(lines).subspan(1)), 4u);
  lines[0] = "other";
  EXPECT_EQ(book->add_lines("j1", 0, lines).error().why, journal_fault::conflict);
  EXPECT_EQ(book->unfinished_lines("j1", 0, 9)[0].text, "{\"line\":0}");
}

TEST_F(the_journal, refuses_gaps_surplus_and_sizes) {
  options.max_line_bytes = 100;
  options.max_lines = 10;
  options.max_options_bytes = 100;
  options.max_jobs = 2;
  options.max_output_bytes = 100;
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 2)).ok());
  EXPECT_EQ(book->add_lines("j1", 1, lines_of(1)).error().why, journal_fault::invalid);
  EXPECT_EQ(book->add_lines("j1", 0, lines_of(3)).error().why, journal_fault::invalid);
  EXPECT_EQ(book->add_lines("j1", ~0ull, lines_of(1)).error().why, journal_fault::invalid);
  EXPECT_EQ(book->add_lines("j1", 0, std::vector{std::string(101, 'x')}).error().why, journal_fault::too_large);
  EXPECT_EQ(book->add_lines("no", 0, lines_of(1)).error().why, journal_fault::unknown);
  EXPECT_EQ(book->create_job(spec_of("j2", 11)).error().why, journal_fault::too_large);
  for (const char* id : {"", "a b", "../x", "a\n", "j;--"}) {
    EXPECT_EQ(book->create_job(spec_of(id, 1)).error().why, journal_fault::invalid) << id;
  }
  EXPECT_EQ(book->create_job({"j2", "batch", "t", std::string(101, 'x'), 1}).error().why, journal_fault::too_large);
  EXPECT_EQ(book->create_job(spec_of("j2", 1, "two words")).error().why, journal_fault::invalid);
  EXPECT_EQ(book->record("j1", 0, std::string(101, 'x'), true).error().why, journal_fault::too_large);
  ASSERT_TRUE(book->create_job(spec_of("j2", 1)).ok());
  EXPECT_EQ(book->create_job(spec_of("j3", 1)).error().why, journal_fault::full);
  EXPECT_EQ(book->unfinished_lines("j1", 0, 10).size(), 0u);
}

TEST_F(the_journal, takes_no_more_lines_after_the_seal) {
  open();
  accepted("j1", 2);
  EXPECT_EQ(book->add_lines("j1", 2, lines_of(1)).error().why, journal_fault::invalid);
  EXPECT_EQ(*book->add_lines("j1", 2, {}), 2u);
}

TEST_F(the_journal, records_an_output_once) {
  open();
  accepted("j1", 3);
  EXPECT_TRUE(*book->record("j1", 1, "one", true));
  EXPECT_FALSE(*book->record("j1", 1, "another", false));
  EXPECT_FALSE(*book->record("j1", 3, "beyond", true));
  EXPECT_FALSE(*book->record("j1", ~0ull, "far beyond", true));
  EXPECT_FALSE(*book->record("no", 0, "of nobody", true));
  const std::vector<line_record> twice{{"j1", 0, "zero", false}, {"j1", 0, "again", true}};
  EXPECT_THAT(*book->record_all(twice), ElementsAre(true, false));
  const auto job = *book->find("j1");
  EXPECT_EQ(job.line_ok, 1u);
  EXPECT_EQ(job.line_failed, 1u);
  const auto outputs = book->outputs("j1", 0, 10);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].text, "zero");
  EXPECT_FALSE(outputs[0].ok);
  EXPECT_EQ(outputs[1].text, "one");
  EXPECT_EQ(indexes_of(book->unfinished_lines("j1", 0, 10)), (std::vector<std::uint64_t>{2}));
}

TEST_F(the_journal, records_nothing_for_jobs_that_were_not_accepted) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 1)).ok());
  ASSERT_TRUE(book->add_lines("j1", 0, lines_of(1)).ok());
  EXPECT_FALSE(*book->record("j1", 0, "x", true));
}

TEST_F(the_journal, gives_outputs_in_order_up_to_the_first_gap) {
  open();
  accepted("j1", 6);
  for (const std::uint64_t index : {0, 1, 3, 4}) EXPECT_TRUE(*book->record("j1", index, "x", true));
  EXPECT_EQ(indexes_of(book->outputs("j1", 0, 10)), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(indexes_of(book->outputs("j1", 1, 1)), (std::vector<std::uint64_t>{1}));
  EXPECT_TRUE(book->outputs("j1", 2, 10).empty());
  EXPECT_EQ(indexes_of(book->outputs("j1", 3, 10)), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_TRUE(book->outputs("j1", ~0ull, 10).empty());
  EXPECT_TRUE(book->cancel("j1").ok());
  EXPECT_EQ(indexes_of(book->outputs("j1", 0, 10)), (std::vector<std::uint64_t>{0, 1, 3, 4}));
}

TEST_F(the_journal, succeeds_with_the_last_output) {
  open();
  accepted("j1", 2);
  EXPECT_EQ(book->start("j1")->state, job_state::running);
  EXPECT_EQ(book->start("j1")->state, job_state::running);
  (void)book->record("j1", 0, "x", true);
  EXPECT_EQ(book->find("j1")->state, job_state::running);
  seconds += 5;
  (void)book->record("j1", 1, "x", false);
  EXPECT_EQ(book->find("j1")->state, job_state::succeeded);
  EXPECT_EQ(book->find("j1")->finished, seconds);
  EXPECT_TRUE(book->unfinished().empty());
  EXPECT_EQ(book->start("j1").error().why, journal_fault::wrong_state);
  EXPECT_EQ(book->cancel("j1")->state, job_state::succeeded);
}

TEST_F(the_journal, records_nothing_after_a_cancel) {
  open();
  accepted("j1", 2);
  EXPECT_EQ(book->cancel("j1")->state, job_state::cancelled);
  EXPECT_FALSE(*book->record("j1", 0, "late", true));
  EXPECT_EQ(book->cancel("no").error().why, journal_fault::unknown);
}

TEST_F(the_journal, takes_a_batch_without_lines_for_done) {
  open();
  EXPECT_EQ(accepted("j1", 0).state, job_state::succeeded);
  ASSERT_TRUE(book->create_job(spec_of("j2", 0, "fine-tune")).ok());
  EXPECT_EQ(book->seal("j2")->state, job_state::queued);
  EXPECT_EQ(book->finish("j2", job_state::running).error().why, journal_fault::invalid);
  const auto job = book->finish("j2", job_state::failed, "no data");
  EXPECT_EQ(job->state, job_state::failed);
  EXPECT_EQ(job->error, "no data");
}

TEST_F(the_journal, keeps_any_bytes) {
  open();
  const std::vector<std::string> lines{std::string("a\0b", 3), "\xff\xfe", "", "'; DROP TABLE jobs; --"};
  ASSERT_TRUE(book->create_job(spec_of("j1", 4)).ok());
  ASSERT_TRUE(book->add_lines("j1", 0, lines).ok());
  ASSERT_TRUE(book->seal("j1").ok());
  const auto stored = book->unfinished_lines("j1", 0, 10);
  ASSERT_EQ(stored.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stored[i].text, lines[i]);
    EXPECT_TRUE(*book->record("j1", i, lines[i], true));
  }
  for (const auto& output : book->outputs("j1", 0, 10)) EXPECT_EQ(output.text, lines[output.index]);
}

TEST_F(the_journal, gives_long_texts_in_pages) {
  options.page_bytes = 1000;
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 10)).ok());
  ASSERT_TRUE(book->add_lines("j1", 0, std::vector(10, std::string(400, 'x'))).ok());
  ASSERT_TRUE(book->seal("j1").ok());
  EXPECT_EQ(book->unfinished_lines("j1", 0, 100).size(), 3u);
  EXPECT_EQ(indexes_of(book->unfinished_lines("j1", 8, 100)), (std::vector<std::uint64_t>{8, 9}));
}

TEST_F(the_journal, lists_the_newest_first) {
  open();
  for (const char* id : {"a", "b", "c"}) accepted(id, 1);
  const auto jobs = book->list(2);
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].spec.id, "c");
  EXPECT_EQ(book->unfinished().front().spec.id, "a");
}

TEST_F(the_journal, lists_what_is_older_than_a_job) {
  open();
  for (const char* id : {"a", "b", "c", "d"}) accepted(id, 1);
  const auto older = book->list(2, "batch", {}, "d");
  ASSERT_EQ(older.size(), 2u);
  EXPECT_EQ(older[0].spec.id, "c");
  EXPECT_EQ(older[1].spec.id, "b");
  EXPECT_EQ(book->list(2, {}, "tenant", "b").size(), 1u);
  EXPECT_TRUE(book->list(2, {}, {}, "a").empty());
  EXPECT_TRUE(book->list(2, {}, {}, "none").empty());
}

TEST_F(the_journal, lists_as_many_of_a_kind_whatever_is_newer) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("tune", 0, "fine-tune")).ok());
  for (const char* id : {"a", "b", "c"}) accepted(id, 1);
  const auto tunes = book->list(2, "fine-tune");
  ASSERT_EQ(tunes.size(), 1u);
  EXPECT_EQ(tunes[0].spec.id, "tune");
  EXPECT_EQ(book->list(2, "batch").size(), 2u);
  EXPECT_TRUE(book->list(2, "other").empty());
}

TEST_F(the_journal, lists_as_many_of_a_tenant_whatever_is_newer) {
  open();
  for (const char* id : {"a", "b", "c"})
    ASSERT_TRUE(book->create_job({id, "batch", *id == 'a' ? "ann" : "", "{}", 1}).ok());
  const auto hers = book->list(2, {}, "ann");
  ASSERT_EQ(hers.size(), 1u);
  EXPECT_EQ(hers[0].spec.id, "a");
  EXPECT_EQ(book->list(9, "batch", "").size(), 2u) << "of nobody";
  EXPECT_EQ(book->list(9).size(), 3u);
}

TEST_F(the_journal, removes_and_forgets_what_is_over) {
  std::vector<std::string> gone;
  options.on_removed = [&](const std::string& id) { gone.push_back(id); };
  open();
  accepted("a", 1);
  accepted("b", 1);
  (void)book->record("a", 0, "x", true);
  (void)book->append_event("a", "message", "{}");
  EXPECT_EQ(book->remove("b").error().why, journal_fault::wrong_state);
  EXPECT_EQ(book->remove_old(1s), 0u);
  EXPECT_EQ(book->remove_old(0s), 1u);
  EXPECT_FALSE(book->find("a"));
  EXPECT_TRUE(book->events("a", 0, 10).empty());
  accepted("a", 1);
  EXPECT_TRUE(book->outputs("a", 0, 10).empty()) << "a new job, without the old one's outputs";
  ASSERT_TRUE(book->create_job(spec_of("never-sealed", 5)).ok());
  seconds += 100;
  EXPECT_EQ(book->remove_old(100s), 1u);
  EXPECT_FALSE(*book->remove("never-sealed"));
  EXPECT_EQ(gone, (std::vector<std::string>{"a", "never-sealed"}));
  EXPECT_EQ(book->list().size(), 2u);
}

TEST_F(the_journal, keeps_what_a_leap_of_the_wall_clock_alone_makes_old) {
  constexpr std::int64_t day = 24 * 3600;
  open();
  accepted("done", 1);
  (void)book->record("done", 0, "x", true);
  ASSERT_TRUE(book->create_job(spec_of("being-sent", 5)).ok());
  EXPECT_EQ(book->remove_old(24h), 0u);
  wall_leap = 40 * day;
  seconds += 60;
  EXPECT_EQ(book->remove_old(24h), 0u);
  open();
  EXPECT_EQ(book->remove_old(24h), 0u) << "nor in a life that begins with a clock that is wrong";
  accepted("of-the-wrong-time", 1);
  (void)book->record("of-the-wrong-time", 0, "x", true);
  open();
  EXPECT_EQ(book->remove_old(24h), 0u) << "nor where a job has a time of that clock";
  wall_leap = 0;
  seconds += 60;
  EXPECT_EQ(book->remove_old(24h), 0u);
  seconds += day - 180;
  EXPECT_EQ(book->remove_old(24h), 0u) << "a minute is left to them";
  seconds += 60;
  EXPECT_EQ(book->remove_old(24h), 2u) << "a day has passed";
}

TEST_F(the_journal, gives_the_room_of_removed_jobs_back_piece_by_piece) {
  open();
  accepted("a", 25);
  for (std::uint64_t i = 0; i < 25; ++i) (void)book->record("a", i, "x", true);
  (void)book->append_event("a", "message", "{}");
  accepted("b", 1);
  EXPECT_FALSE(book->sweep()) << "nothing was removed";
  ASSERT_TRUE(*book->remove("a"));
  for (const char* id : {"a", "~1"}) EXPECT_FALSE(book->find(id));
  EXPECT_EQ(book->list().size(), 1u);
  accepted("a", 1);
  open();
  int pieces = 0;
  while (book->sweep(10)) ++pieces;
  EXPECT_EQ(pieces, 6) << "51 rows";
  EXPECT_EQ(rows_of("lines"), 2) << "of b, and of the new a";
  EXPECT_EQ(rows_of("outputs") + rows_of("events"), 0);
  EXPECT_EQ(rows_of("jobs"), 2);
}

TEST_F(the_journal, lets_the_oldest_that_is_over_go_for_a_new_one) {
  options.max_jobs = 3;
  open();
  for (const char* id : {"a", "b", "c"}) accepted(id, 1);
  const auto refused = book->create_job(spec_of("d", 1));
  ASSERT_EQ(refused.error().why, journal_fault::full);
  EXPECT_THAT(refused.error().text, HasSubstr("none is over: cancel some"));
  ASSERT_TRUE(book->cancel("b").ok());
  ++seconds;
  ASSERT_TRUE(book->cancel("a").ok());
  EXPECT_TRUE(book->create_job(spec_of("d", 1)).ok());
  EXPECT_TRUE(book->find("a"));
  EXPECT_FALSE(book->find("b")) << "it was over before a";
}

TEST_F(the_journal, keeps_events_in_order_and_the_newest_of_them) {
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

TEST_F(the_journal, takes_several_events_at_once) {
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

TEST_F(the_journal, pauses_and_resumes_fine_tunes_alone) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("f", 0, "fine-tune")).ok());
  EXPECT_FALSE(book->pause("f").ok());
  EXPECT_EQ(book->seal("f")->state, job_state::queued);
  EXPECT_EQ(book->start("f")->state, job_state::running);
  EXPECT_EQ(book->pause("f")->state, job_state::paused);
  EXPECT_EQ(book->pause("f")->state, job_state::paused);
  EXPECT_FALSE(book->start("f").ok());
  EXPECT_EQ(book->remove_old(0s), 0u);
  EXPECT_FALSE(book->remove("f").ok());
  open();
  ASSERT_EQ(book->unfinished().size(), 1u);
  EXPECT_EQ(book->unfinished()[0].state, job_state::paused);
  EXPECT_EQ(book->resume("f")->state, job_state::queued);
  EXPECT_EQ(book->succeed("f", "pricing@1")->result, "pricing@1");
  EXPECT_EQ(book->cancel("f")->state, job_state::succeeded);
  EXPECT_FALSE(book->resume("f").ok());
  open();
  EXPECT_EQ(book->find("f")->result, "pricing@1");
  accepted("b", 2);
  EXPECT_FALSE(book->pause("b").ok());
}

TEST_F(the_journal, counts_reigns) {
  EXPECT_EQ(open().begin_reign(), 1u);
  EXPECT_EQ(open().begin_reign(), 2u);
}

TEST_F(the_journal, keeps_the_adapter_catalogue) {
  const adapter_catalogue::options base{"llama", model_id{~0ull}, 100};
  open();
  adapter_catalogue adapters(base, book->load_catalogue());
  for (const char content : {'a', 'b', 'c'}) {
    const auto entry = adapters.publish({"pricing", std::string(64, content), "adapters/x", 99, 8, model_id{~0ull}});
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
  EXPECT_EQ(again.publish({"pricing", std::string(64, 'd'), "x", 1, 8, model_id{~0ull}})->full_name(), "pricing@4");
  adapter_catalogue requantized({"llama", model_id{7}, 100}, saved);
  requantized.set_fits(adapter_version{2});
  book->save(requantized.take_changes());
  EXPECT_EQ(adapter_catalogue(base, book->load_catalogue()).find(adapter_version{2})->spec.base, model_id{7});
}

TEST_F(the_journal, forgets_versions_that_the_catalogue_forgot) {
  const adapter_catalogue::options base{"llama", model_id{5}, 100, 16, 0};
  open();
  adapter_catalogue adapters(base);
  const auto version = adapters.publish({"pricing", std::string(64, 'a'), "x", 1, 8, model_id{5}})->version;
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
  const auto next = again.publish({"pricing", std::string(64, 'a'), "x", 1, 8, model_id{5}});
  EXPECT_EQ(next->full_name(), "pricing@2") << "an ordinal is not given again";
  EXPECT_EQ(next->version, adapter_version{2});
}

class a_journal_file : public journal_fixture {
 protected:
  std::string refusal() {
    try {
      open();
    } catch (const input_error& error) {
      const std::string text = error.what();
      EXPECT_THAT(text, HasSubstr(options.file.string()));
      EXPECT_EQ(text.find('\n'), std::string::npos);
      return text;
    }
    return "opened";
  }
  void execute(const char* sql) {
    std::filesystem::create_directories(folder);
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(options.file.c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(raw);
  }
  void write(const std::string& bytes) {
    std::filesystem::create_directories(folder);
    std::ofstream(options.file, std::ios::binary) << bytes;
  }
};

TEST_F(a_journal_file, is_refused_while_another_has_it) {
  journal first(options);
  EXPECT_THAT(refusal(), HasSubstr("another head"));
}

TEST_F(a_journal_file, is_refused_where_it_is_no_database) {
  write(std::string(5000, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("not a database"));
}

TEST_F(a_journal_file, is_refused_where_it_belongs_to_another_program) {
  execute("CREATE TABLE songs (title TEXT)");
  EXPECT_THAT(refusal(), HasSubstr("another program"));
}

TEST_F(a_journal_file, of_the_first_version_is_brought_up_to_date) {
  open();
  accepted("old", 3);
  book.reset();
  execute("ALTER TABLE jobs DROP COLUMN result");
  execute("ALTER TABLE heads DROP COLUMN expired_to");
  execute("PRAGMA user_version = 1");
  open();
  EXPECT_EQ(book->find("old")->received, 3u);
  EXPECT_EQ(book->find("old")->result, "");
}

TEST_F(a_journal_file, is_refused_where_it_is_newer) {
  open();
  book.reset();
  execute("PRAGMA user_version = 99");
  EXPECT_THAT(refusal(), HasSubstr("version 99"));
}

TEST_F(a_journal_file, is_refused_where_it_is_a_folder_or_in_none) {
  std::filesystem::create_directories(options.file);
  EXPECT_THAT(refusal(), HasSubstr("open"));
  options.file = "/proc/none/journal.db";
  EXPECT_THAT(refusal(), HasSubstr("folder"));
}

TEST_F(a_journal_file, that_is_damaged_is_refused_or_served_never_a_crash) {
  open();
  accepted("j1", 300);
  book.reset();
  std::ifstream stream(options.file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  ASSERT_GT(whole.size(), 8192u);
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 40; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    write(bytes);
    try {
      open();
      (void)book->list();
      (void)book->unfinished_lines("j1", 0, 1000);
      (void)book->record("j1", 5, "x", true);
    } catch (const input_error&) {
    } catch (const journal_failure&) {
    }
    book.reset();
    std::filesystem::remove(options.file.string() + "-wal");
  }
}

}  // namespace
}  // namespace troupe
