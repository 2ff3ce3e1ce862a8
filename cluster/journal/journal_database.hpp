// SQLite in a few words, private to the journal: statements made once, values in and out, transactions that roll back.
// Every failure of SQLite is a journal_failure that names the file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace troupe::detail {

class database;

/// A statement in use; it is reset when this object goes. Bound text must live as long.
class statement {
 public:
  statement(database& owner, sqlite3_stmt* raw) : owner_(owner), raw_(raw) {}
  ~statement();
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;

  /// Binds the next parameter. A text is not copied: it has to live as long as the statement is used.
  statement& operator<<(std::string_view text);
  statement& operator<<(std::string&& text) = delete;
  statement& operator<<(std::int64_t number);
  statement& operator<<(std::uint64_t number);  ///< at most the largest number that SQLite has
  statement& operator<<(std::uint32_t number) { return *this << std::int64_t{number}; }

  /// Whether there is another row.
  bool step();
  /// Runs to the end. Returns how many rows were changed.
  int run();
  /// Makes it ready to run again with other values.
  void reset();

  std::int64_t number(int column) const;
  std::uint64_t count(int column) const { return static_cast<std::uint64_t>(number(column)); }
  std::string text(int column) const;

 private:
  database& owner_;
  sqlite3_stmt* raw_;
  int bound_ = 0;
};

class database {
 public:
  /// Opens or makes the file; no other process can use it. Throws journal_failure.
  explicit database(const std::filesystem::path& file);
  ~database();
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  /// `sql` must be a literal: its statement is prepared once, and found again by the literal's address.
  statement prepare(const char* sql);
  void execute(const char* sql);
  std::int64_t number_of(const char* sql);
  /// Whether a commit is on the disk when it returns, or only safe from the death of the process.
  void set_durable(bool durable);
  /// Whether a transaction is open.
  bool is_changing() const;
  /// SQLite itself goes on writing into a file that was removed. Throws journal_failure.
  void check_is_there() const;
  [[noreturn]] void fail() const;

  sqlite3* raw() const { return raw_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  void refuse_read_only() const;

  std::filesystem::path file_;
  sqlite3* raw_ = nullptr;
  std::unordered_map<const char*, sqlite3_stmt*> prepared_;
  bool is_durable_ = false;
};

/// All or nothing: rolls back unless it was committed. One that begins within another is a part of it.
class transaction {
 public:
  enum class kind { quick, durable };
  transaction(database& db, kind how);
  ~transaction();
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;
  void commit();

 private:
  database& db_;
  bool is_open_;
};

/// What errors tell to do about a file that is damaged.
std::string remedy_of_damaged(const std::filesystem::path& file);
/// For a journal that holds nothing. Throws input_error if one of the files and folders `beside` it does.
void check_is_first(const std::filesystem::path& file, const std::vector<std::filesystem::path>& beside);
/// Makes the tables, or brings them up to this build's version. Throws input_error if the file is not ours, or holds
/// nothing and is not the first.
void prepare_schema(database& db, const std::vector<std::filesystem::path>& beside);

}  // namespace troupe::detail
