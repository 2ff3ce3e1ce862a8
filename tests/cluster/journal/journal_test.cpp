#include "cluster/journal/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "tests/cluster/journal/journal_fixture.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using journal_fault = journal_error::reason;
using testing::HasSubstr;

class the_journal : public journal_fixture {
 protected:
  /// How many rows a table has. Closes the journal.
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

TEST_F(the_journal, has_jobs_that_run_and_wait_before_those_that_are_over_however_many_are_newer) {
  open();
  for (const char* id : {"runs", "waits", "is-paused"}) ASSERT_TRUE(book->create_job(spec_of(id, 0, "fine-tune")).ok());
  for (const char* id : {"runs", "waits", "is-paused"}) ASSERT_TRUE(book->seal(id).ok());
  ASSERT_TRUE(book->start("runs").ok());
  ASSERT_TRUE(book->pause("is-paused").ok());
  for (const char* id : {"j1", "j2", "j3"}) ASSERT_TRUE(book->create_job(spec_of(id, 0)).ok());
  for (const char* id : {"j1", "j2", "j3"}) EXPECT_EQ(book->seal(id)->state, job_state::succeeded);
  ASSERT_TRUE(book->create_job(spec_of("receives", 1)).ok());
  ASSERT_TRUE(book->remove("j3").ok());
  const auto ids_of_foremost = [&](std::size_t most) {
    std::string ids;
    for (const job_info& job : book->foremost(most)) ids += job.spec.id + " ";
    return ids;
  };
  EXPECT_EQ(ids_of_foremost(100), "runs receives is-paused waits j2 j1 ");
  EXPECT_EQ(ids_of_foremost(2), "runs receives ");
  EXPECT_EQ(book->count(), 6u);
}

TEST_F(the_journal, keeps_the_name_that_a_job_was_given_first) {
  open();
  job_spec spec = spec_of("j1", 0);
  spec.name = "questions.jsonl";
  ASSERT_TRUE(book->create_job(spec).ok());
  spec.name = "the same, renamed.jsonl";
  const auto again = book->create_job(spec);
  ASSERT_TRUE(again.ok()) << again.error().text;
  EXPECT_EQ(again->spec.name, "questions.jsonl");
  open();
  EXPECT_EQ(book->find("j1")->spec.name, "questions.jsonl");
  EXPECT_EQ(book->list().at(0).spec.name, "questions.jsonl");
  spec = spec_of("j2", 0);
  spec.name = std::string(4097, 'x');
  EXPECT_EQ(book->create_job(spec).error().why, journal_fault::too_large);
}

TEST_F(the_journal, does_not_begin_or_end_a_job_again) {
  open();
  accepted("j1", 2);
  ASSERT_TRUE(book->start("j1").ok());
  EXPECT_EQ(book->seal("j1")->state, job_state::running);
  ASSERT_TRUE(book->cancel("j1").ok());
  EXPECT_EQ(book->seal("j1")->state, job_state::cancelled);
  EXPECT_EQ(book->succeed("j1", "")->state, job_state::cancelled);
  const auto again = book->finish("j1", job_state::failed, "too late");
  EXPECT_EQ(again->state, job_state::cancelled);
  EXPECT_EQ(again->error, "");
  EXPECT_TRUE(book->unfinished().empty());
}

TEST_F(the_journal, knows_no_job_that_was_not_created) {
  open();
  for (const auto& answer : {book->seal("no"), book->start("no"), book->pause("no"), book->resume("no"),
                             book->succeed("no", ""), book->cancel("no")})
    EXPECT_EQ(answer.error().why, journal_fault::unknown);
}

TEST_F(the_journal, removes_at_once_what_was_never_sent_whole) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 5)).ok());
  EXPECT_TRUE(*book->remove("j1"));
  EXPECT_FALSE(book->find("j1"));
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

TEST_F(the_journal, lists_the_newest_first) {
  open();
  for (const char* id : {"a", "b", "c"}) accepted(id, 1);
  const auto jobs = book->list({.limit = 2});
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0].spec.id, "c");
  EXPECT_EQ(book->unfinished().front().spec.id, "a");
}

TEST_F(the_journal, lists_what_is_older_than_a_job) {
  open();
  for (const char* id : {"a", "b", "c", "d"}) accepted(id, 1);
  const auto older = book->list({.limit = 2, .kind = "batch", .after = "d"});
  ASSERT_EQ(older.size(), 2u);
  EXPECT_EQ(older[0].spec.id, "c");
  EXPECT_EQ(older[1].spec.id, "b");
  EXPECT_EQ(book->list({.limit = 2, .tenant = "tenant", .after = "b"}).size(), 1u);
  EXPECT_TRUE(book->list({.limit = 2, .after = "a"}).empty());
  EXPECT_TRUE(book->list({.limit = 2, .after = "none"}).empty());
}

TEST_F(the_journal, lists_what_is_older_than_a_job_that_was_removed_meanwhile) {
  open();
  for (const char* id : {"a", "b", "c"}) accepted(id, 1);
  const auto page = book->list({.limit = 2});
  ASSERT_EQ(page.back().spec.id, "b");
  ASSERT_TRUE(book->cancel("b").ok());
  ASSERT_TRUE(book->remove("b").ok());
  const auto older = book->list({.limit = 2, .below = page.back().number});
  ASSERT_EQ(older.size(), 1u);
  EXPECT_EQ(older[0].spec.id, "a");
}

TEST_F(the_journal, lists_as_many_of_a_kind_whatever_is_newer) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("tune", 0, "fine-tune")).ok());
  for (const char* id : {"a", "b", "c"}) accepted(id, 1);
  const auto tunes = book->list({.limit = 2, .kind = "fine-tune"});
  ASSERT_EQ(tunes.size(), 1u);
  EXPECT_EQ(tunes[0].spec.id, "tune");
  EXPECT_EQ(book->list({.limit = 2, .kind = "batch"}).size(), 2u);
  EXPECT_TRUE(book->list({.limit = 2, .kind = "other"}).empty());
}

TEST_F(the_journal, lists_as_many_of_a_tenant_whatever_is_newer) {
  open();
  for (const char* id : {"a", "b", "c"})
    ASSERT_TRUE(book->create_job({id, "batch", *id == 'a' ? "ann" : "", "{}", 1}).ok());
  const auto hers = book->list({.limit = 2, .tenant = "ann"});
  ASSERT_EQ(hers.size(), 1u);
  EXPECT_EQ(hers[0].spec.id, "a");
  EXPECT_EQ(book->list({.limit = 9, .kind = "batch", .tenant = ""}).size(), 2u) << "of nobody";
  EXPECT_EQ(book->list({.limit = 9}).size(), 3u);
}

TEST_F(the_journal, writes_what_is_done_at_once_whole_or_not_at_all) {
  std::vector<std::string> gone;
  options.on_removed = [&](const std::string& id) { gone.push_back(id); };
  options.max_jobs = 2;
  open();
  accepted("a", 1);
  accepted("b", 1);
  (void)record("a", 0, "x", true);
  const auto make_room_for_c = [&](bool disk_is_full) {
    book->at_once([&] {
      EXPECT_TRUE(book->create_job(spec_of("c", 1)).ok());
      EXPECT_TRUE(book->append_event("c", "message", "{}").ok());
      if (disk_is_full) throw journal_failure("disk full");
    });
  };
  EXPECT_THROW(make_room_for_c(true), journal_failure);
  EXPECT_TRUE(book->find("a"));
  EXPECT_FALSE(book->find("c"));
  EXPECT_TRUE(gone.empty()) << "its files are still needed";
  (void)record("b", 0, "x", true);
  EXPECT_TRUE(book->remove("b").ok());
  EXPECT_EQ(gone, std::vector<std::string>{"b"});
  accepted("d", 1);
  make_room_for_c(false);
  EXPECT_FALSE(book->find("a"));
  EXPECT_EQ(book->events("c", 0, 10).size(), 1u);
  EXPECT_EQ(gone, (std::vector<std::string>{"b", "a"}));
}

TEST(state_of_a_job, is_known_by_its_name) {
  for (const auto state : {job_state::receiving, job_state::queued, job_state::running, job_state::succeeded,
                           job_state::failed, job_state::cancelled, job_state::paused})
    EXPECT_EQ(job_state_of(name_of(state)), state) << name_of(state);
  EXPECT_EQ(job_state_of(""), std::nullopt);
  EXPECT_EQ(job_state_of("Running"), std::nullopt);
}

TEST_F(the_journal, removes_and_forgets_what_is_over) {
  std::vector<std::string> gone;
  options.on_removed = [&](const std::string& id) { gone.push_back(id); };
  open();
  accepted("a", 1);
  accepted("b", 1);
  (void)record("a", 0, "x", true);
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
  EXPECT_EQ(book->remove_old(100s), 0u);
  EXPECT_EQ(book->remove_unsealed(101s), 0u);
  EXPECT_EQ(book->remove_unsealed(100s), 1u);
  EXPECT_FALSE(*book->remove("never-sealed"));
  EXPECT_EQ(gone, (std::vector<std::string>{"a", "never-sealed"}));
  EXPECT_EQ(book->list().size(), 2u);
}

TEST_F(the_journal, keeps_what_a_leap_of_the_wall_clock_alone_makes_old) {
  constexpr std::int64_t day = 24 * 3600;
  open();
  accepted("done", 1);
  (void)record("done", 0, "x", true);
  ASSERT_TRUE(book->create_job(spec_of("being-sent", 5)).ok());
  EXPECT_EQ(book->remove_old(24h), 0u);
  wall_leap = 40 * day;
  seconds += 60;
  EXPECT_EQ(book->remove_old(24h) + book->remove_unsealed(24h), 0u);
  open();
  EXPECT_EQ(book->remove_old(24h), 0u) << "nor in a life that begins with a clock that is wrong";
  accepted("of-the-wrong-time", 1);
  (void)record("of-the-wrong-time", 0, "x", true);
  open();
  EXPECT_EQ(book->remove_old(24h), 0u) << "nor where a job has a time of that clock";
  wall_leap = 0;
  seconds += 60;
  EXPECT_EQ(book->remove_old(24h), 0u);
  seconds += day - 180;
  EXPECT_EQ(book->remove_old(24h) + book->remove_unsealed(24h), 0u) << "a minute is left to them";
  seconds += 60;
  EXPECT_EQ(book->remove_old(24h) + book->remove_unsealed(24h), 2u) << "a day has passed";
}

/// As on a machine that runs by day only.
TEST_F(the_journal, removes_what_is_old_though_no_life_lasts_for_a_day) {
  constexpr std::int64_t day = 24 * 3600, hour = 3600;
  open();
  accepted("done", 1);
  (void)record("done", 0, "x", true);
  EXPECT_EQ(book->remove_old(720h), 0u);
  wall_leap = 40 * day;
  for (int life = 0; life < 3; ++life) {
    wall_leap += 14 * hour;
    open();
    for (int worked = 0; worked < 8; ++worked, seconds += hour)
      ASSERT_EQ(book->remove_old(720h), 0u) << life << " " << worked;
    seconds -= hour;
  }
  open();
  EXPECT_EQ(book->remove_old(720h), 0u) << "21 hours";
  seconds += 3 * hour;
  EXPECT_EQ(book->remove_old(720h), 1u);
}

TEST_F(the_journal, gives_the_room_of_removed_jobs_back_piece_by_piece) {
  open();
  accepted("a", 25);
  for (std::uint64_t i = 0; i < 25; ++i) (void)record("a", i, "x", true);
  (void)book->append_event("a", "message", "{}");
  accepted("b", 1);
  EXPECT_FALSE(book->sweep()) << "nothing was removed";
  ASSERT_TRUE(*book->remove("a"));
  for (const char* id : {"a", "~1"}) EXPECT_FALSE(book->find(id));
  EXPECT_EQ(book->list().size(), 1u);
  accepted("a", 1);
  open();
  int pieces = 0;
  while (book->sweep(10 * 4096)) ++pieces;
  EXPECT_EQ(pieces, 6) << "51 rows";
  EXPECT_EQ(rows_of("lines"), 2) << "of b, and of the new a";
  EXPECT_EQ(rows_of("outputs") + rows_of("events"), 0);
  EXPECT_EQ(rows_of("jobs"), 2);
}

/// While a piece is deleted everybody waits.
TEST_F(the_journal, gives_the_room_of_long_outputs_back_in_pieces_of_few) {
  open();
  accepted("a", 7);
  for (std::uint64_t i = 0; i < 7; ++i) (void)record("a", i, std::string(100'000, 'x'), true);
  ASSERT_TRUE(*book->remove("a"));
  EXPECT_TRUE(book->sweep(300'000));
  EXPECT_EQ(rows_of("outputs"), 4);
  EXPECT_EQ(rows_of("lines"), 7);
  open();
  while (book->sweep(300'000)) {
  }
  EXPECT_EQ(rows_of("outputs") + rows_of("lines") + rows_of("jobs"), 0);
}

TEST_F(the_journal, takes_no_more_of_the_disk_than_what_is_kept_once_jobs_are_removed) {
  open();
  accepted("a", 40);
  for (std::uint64_t i = 0; i < 40; ++i) (void)record("a", i, std::string(100'000, 'x'), true);
  const auto on_disk = [&] {
    book.reset();
    return std::filesystem::file_size(options.file);
  };
  EXPECT_GT(on_disk(), 4'000'000u);
  open();
  ASSERT_TRUE(*book->remove("a"));
  EXPECT_TRUE(book->sweep()) << "all of the job";
  EXPECT_TRUE(book->sweep(1)) << "a page of the file";
  int pieces = 0;
  while (book->sweep(1 << 20)) ++pieces;
  EXPECT_GT(pieces, 1) << "the other pages, some at a time";
  EXPECT_LT(on_disk(), 1'500'000u);
  open();
  EXPECT_FALSE(book->sweep());
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

TEST_F(the_journal, lets_a_job_go_of_those_who_have_most) {
  options.max_jobs = 3;
  open();
  const auto make = [&](const char* id, const char* tenant) {
    ++seconds;
    job_spec spec = spec_of(id, 1);
    spec.tenant = tenant;
    return book->create_job(spec).ok();
  };
  for (const auto& [id, tenant] : {std::pair{"a", "ann"}, {"b", "bob"}, {"c", "bob"}, {"d", "bob"}})
    EXPECT_TRUE(make(id, tenant));
  EXPECT_TRUE(book->find("a")) << "it is older, but ann's only one";
  EXPECT_FALSE(book->find("b"));
}

TEST_F(the_journal, has_room_for_others_however_many_jobs_of_one_are_not_over) {
  options.max_open_jobs = 2;
  open();
  for (const char* id : {"a", "b"}) accepted(id, 1);
  EXPECT_EQ(book->create_job(spec_of("c", 1)).error().why, journal_fault::full);
  job_spec of_another = spec_of("d", 1);
  of_another.tenant = "another";
  EXPECT_TRUE(book->create_job(of_another).ok());
  ASSERT_TRUE(book->cancel("a").ok());
  EXPECT_TRUE(book->create_job(spec_of("c", 1)).ok());
}

TEST_F(the_journal, has_so_many_bytes_for_the_lines_and_outputs_of_one_tenant) {
  const auto lines = lines_of(3);
  options.max_tenant_bytes = 4 * lines[0].size();
  open();
  accepted("a", 3);
  EXPECT_TRUE(book->has_room("tenant"));
  ASSERT_TRUE(book->create_job(spec_of("b", 2)).ok());
  EXPECT_EQ(book->add_lines("b", 0, lines_of(2)).error().why, journal_fault::full);
  EXPECT_TRUE(book->add_lines("b", 0, lines_of(1)).ok());
  EXPECT_TRUE(book->add_lines("b", 0, lines_of(1)).ok()) << "which is there already";
  EXPECT_FALSE(book->has_room("tenant"));
  job_spec of_nobody = spec_of("c", 3);
  of_nobody.tenant = "";
  ASSERT_TRUE(book->create_job(of_nobody).ok());
  EXPECT_TRUE(book->add_lines("c", 0, lines).ok()) << "only keys are held to it";
  EXPECT_TRUE(*book->remove("b"));
  EXPECT_TRUE(book->has_room("tenant"));
  EXPECT_TRUE(*record("a", 0, "an output as long as a line", true)) << "what was accepted is carried out";
  open();
  EXPECT_FALSE(book->has_room("tenant"));
}

TEST_F(the_journal, lets_jobs_go_for_new_ones_that_were_never_sent_whole) {
  options.max_jobs = 3;
  open();
  accepted("a", 1);
  for (const char* id : {"b", "c", "d"}) {
    ++seconds;
    EXPECT_TRUE(book->create_job(spec_of(id, 1)).ok());
  }
  EXPECT_TRUE(book->find("a")) << "it was accepted";
  EXPECT_FALSE(book->find("b"));
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
  EXPECT_NE(book->resume("f").error().text.find("its state is succeeded: only what waits"), std::string::npos);
  open();
  EXPECT_EQ(book->find("f")->result, "pricing@1");
  accepted("b", 2);
  EXPECT_FALSE(book->pause("b").ok());
}

TEST_F(the_journal, counts_reigns) {
  EXPECT_EQ(open().begin_reign(), 1u);
  EXPECT_EQ(open().begin_reign(), 2u);
}

}  // namespace
}  // namespace troupe
