// SQLite in a few words, private to the journal: statements made once, values in and out, transactions that roll back.
// Every failure of SQLite is a journal_failure that names the file.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

struct sqlite3;
struct sqlite3_stmt;

namespace troupe::detail {

class database;

/// A statement in use; reset when it goes. Text that is bound must live as long.
class statement {
 public:
  statement(database& owner, sqlite3_stmt* raw) : owner_(owner), raw_(raw) {}
  ~statement();
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;

  /// The next parameter, from the first on.
  statement& operator<<(std::string_view text);
  statement& operator<<(std::int64_t number);
  statement& operator<<(std::uint64_t number);  ///< beyond what SQLite counts to: the largest it knows
  statement& operator<<(std::uint32_t number) { return *this << std::int64_t{number}; }

  /// Whether there is another row.
  bool step();
  /// Runs to the end; returns the rows that were changed.
  int run();
  /// For the next round, with other values.
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
  /// Opens or makes the file and owns it alone until the end. Throws journal_failure.
  explicit database(const std::filesystem::path& file);
  ~database();
  database(const database&) = delete;
  database& operator=(const database&) = delete;

  /// `sql` must be a literal: it is prepared once and known by its address.
  statement prepare(const char* sql);
  void execute(const char* sql);
  std::int64_t number_of(const char* sql);
  /// A commit is on the disk when it returns, or only written (and safe from the death of the process).
  void set_durable(bool durable);
  [[noreturn]] void fail() const;

  sqlite3* raw() const { return raw_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  sqlite3* raw_ = nullptr;
  std::unordered_map<const char*, sqlite3_stmt*> prepared_;
  bool is_durable_ = false;
};

/// All or nothing: what is not committed when it goes has not happened.
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
  bool is_open_ = true;
};

/// Makes the tables, or brings them up to what this build knows. Throws input_error on a file that is not ours.
void prepare_schema(database& db);

}  // namespace troupe::detail
