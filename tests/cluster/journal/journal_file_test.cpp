#include "cluster/journal/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <random>

#include "base/error.hpp"
#include "cluster/journal/journal_database.hpp"
#include "tests/cluster/journal/journal_fixture.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;

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

TEST_F(a_journal_file, is_its_users_alone_wherever_it_lies) {
  std::filesystem::create_directories(options.file.parent_path());  // by somebody else, for all to read
  open();
  accepted("a", 1);
  for (const char* ending : {"", "-wal"})
    EXPECT_EQ(std::filesystem::status(options.file.string() + ending).permissions(), std::filesystem::perms(0600));
}

TEST_F(a_journal_file, is_refused_where_it_is_no_database) {
  write(std::string(5000, 'x'));
  EXPECT_THAT(refusal(), HasSubstr("not a database"));
}

/// The remedy must be one that the next start takes.
TEST_F(a_journal_file, that_is_damaged_begins_anew_once_its_folder_is_moved_away) {
  options.beside = {folder / "files"};
  write(std::string(5000, 'x'));
  std::filesystem::create_directories(options.beside.front() / "file-1");
  EXPECT_THAT(refusal(), HasSubstr("restore it, or move the folder " + folder.string() + " away to begin anew"));
  std::filesystem::rename(folder, temporary.path() / "away");
  EXPECT_EQ(refusal(), "opened");
}

TEST_F(a_journal_file, accepts_nothing_once_it_was_removed_or_replaced) {
  open();
  accepted("j1", 2);
  const auto elsewhere = options.file.string() + ".moved";
  std::filesystem::rename(options.file, elsewhere);
  const auto refuses = [&] {
    EXPECT_THAT([&] { (void)book->create_job(spec_of("j2", 2)); },
                testing::ThrowsMessage<journal_failure>(HasSubstr("journal.db: was removed or replaced")));
  };
  refuses();
  std::ofstream(options.file) << "of somebody else";
  refuses();
  std::filesystem::rename(elsewhere, options.file);
  EXPECT_TRUE(book->create_job(spec_of("j2", 2)).ok());
}

TEST_F(a_journal_file, on_a_full_disk_says_what_to_do) {
  std::filesystem::create_directories(folder);
  detail::database db(options.file);
  db.execute("PRAGMA max_page_count = 1");
  EXPECT_THAT(
      [&] { db.execute("CREATE TABLE songs (title TEXT)"); },
      testing::ThrowsMessage<journal_failure>(HasSubstr("journal.db: database or disk is full: free some space")));
}

TEST_F(a_journal_file, is_refused_where_it_belongs_to_another_program) {
  execute("CREATE TABLE songs (title TEXT)");
  EXPECT_THAT(refusal(), HasSubstr("another program"));
}

TEST_F(a_journal_file, of_the_first_version_is_brought_up_to_date) {
  open();
  accepted("old", 3);
  book->save({{{.version = adapter_version{1}, .ordinal = 1, .spec = {"red", "a", 9, 8, model_id{1}}}}, {}});
  book.reset();
  execute("ALTER TABLE jobs DROP COLUMN result");
  execute("ALTER TABLE jobs DROP COLUMN name");
  execute("ALTER TABLE heads DROP COLUMN expired_to");
  execute("ALTER TABLE heads DROP COLUMN doubted_for");
  execute("ALTER TABLE adapters ADD COLUMN folder TEXT NOT NULL DEFAULT ''");
  execute("DROP TABLE adapter_owners");
  execute("DROP INDEX jobs_by_tenant; ALTER TABLE jobs DROP COLUMN bytes");
  execute("PRAGMA user_version = 1");
  open();
  EXPECT_EQ(book->find("old")->received, 3u);
  EXPECT_EQ(book->find("old")->result, "");
  ASSERT_EQ(book->load_catalogue().entries.size(), 1u);
  EXPECT_EQ(book->load_catalogue().entries[0].full_name(), "red@1");
}

TEST_F(a_journal_file, of_before_names_had_owners_knows_them_by_its_fine_tunes) {
  open();
  for (const auto& [id, tenant, version] :
       {std::tuple("ft-1", "ann", "red@1"), std::tuple("ft-2", "bob", "red@2"), std::tuple("ft-3", "", "blue@1")}) {
    ASSERT_TRUE(book->create_job({id, "fine-tune", tenant, "{}", 0}).ok());
    ASSERT_TRUE(book->seal(id).ok());
    ASSERT_TRUE(book->succeed(id, version).ok());
  }
  book.reset();
  execute("DROP TABLE adapter_owners");
  execute("ALTER TABLE heads DROP COLUMN doubted_for");
  execute("DROP INDEX jobs_by_tenant; ALTER TABLE jobs DROP COLUMN bytes");
  execute("PRAGMA user_version = 5");
  open();
  EXPECT_EQ(book->owner_of_adapter("red"), "ann");
  EXPECT_EQ(book->owner_of_adapter("blue"), std::nullopt);
}

TEST_F(a_journal_file, is_refused_where_it_is_newer) {
  open();
  book.reset();
  execute("PRAGMA user_version = 99");
  EXPECT_THAT(refusal(), HasSubstr("version 99"));
}

TEST_F(a_journal_file, that_is_missing_or_empty_is_refused_beside_what_an_earlier_one_named) {
  options.beside = {folder / "files", folder / "training"};
  std::filesystem::create_directories(options.beside.front());
  open();  // an empty folder names nothing
  accepted("j1", 3);
  const std::string young = test::read_file(options.file);  // all of it is in the -wal file
  book.reset();
  std::filesystem::create_directories(options.beside.back() / "j1");
  for (const auto& lost : {std::string(), young}) {
    write(lost);
    EXPECT_THAT(refusal(), HasSubstr("training is left of an earlier one"));
  }
  std::filesystem::remove(options.file);
  EXPECT_THAT(refusal(), HasSubstr("missing or empty"));
  EXPECT_FALSE(std::filesystem::exists(options.file));
}

TEST_F(a_journal_file, that_is_missing_does_not_take_its_log_along) {
  const std::string log = options.file.string() + "-wal";
  std::filesystem::create_directories(folder);
  std::ofstream(log) << "all that is left";
  EXPECT_THAT(refusal(), HasSubstr("journal.db-wal is left"));
  EXPECT_EQ(test::read_file(log), "all that is left");
}

TEST_F(a_journal_file, is_refused_where_it_is_a_folder_or_in_none) {
  std::filesystem::create_directories(options.file);
  EXPECT_THAT(refusal(), HasSubstr("make it a file that can be written, or choose another state_dir"));
  options.file = "/proc/none/journal.db";
  EXPECT_THAT(refusal(), HasSubstr("folder"));
}

/// Not even root may write into a program that runs.
TEST_F(a_journal_file, is_refused_where_it_may_only_be_read) {
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe"), options.file);
  EXPECT_THAT(refusal(), HasSubstr("may only be read: make it a file that can be written"));
}

TEST_F(a_journal_file, that_is_damaged_is_refused_or_served_never_a_crash) {
  open();
  accepted("j1", 300);
  book.reset();
  const std::string whole = test::read_file(options.file);
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
      (void)record("j1", 5, "x", true);
    } catch (const input_error&) {
    } catch (const journal_failure&) {
    }
    book.reset();
    std::filesystem::remove(options.file.string() + "-wal");
  }
}

}  // namespace
}  // namespace troupe
