#include "cluster/journal/journal_database.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe::detail {
namespace {

/// ": what to do", where somebody can do something.
std::string remedy_of(int problem, const std::filesystem::path& file) {
  switch (problem) {
    case SQLITE_FULL:
      return ": free some space";
    case SQLITE_IOERR:
      return ": free some space, and see whether the disk is whole";
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return ": make it a file that can be written, or choose another state_dir";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ": " + remedy_of_damaged(file);
    default:
      return "";
  }
}

}  // namespace

std::string remedy_of_damaged(const std::filesystem::path& file) {
  return fmt::format("restore it, or move the folder {} away to begin anew", file.parent_path().string());
}

statement::~statement() {
  sqlite3_reset(raw_);  // its result is that of the last step, which was looked at
  sqlite3_clear_bindings(raw_);
}

statement& statement::operator<<(std::string_view text) {
  // An empty view may be null, which is not ''.
  const char* bytes = text.empty() ? "" : text.data();
  if (sqlite3_bind_text64(raw_, ++bound_, bytes, text.size(), SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK) owner_.fail();
  return *this;
}

statement& statement::operator<<(std::int64_t number) {
  if (sqlite3_bind_int64(raw_, ++bound_, number) != SQLITE_OK) owner_.fail();
  return *this;
}

statement& statement::operator<<(std::uint64_t number) {
  constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
  return *this << static_cast<std::int64_t>(std::min(number, largest));
}

bool statement::step() {
  const int answer = sqlite3_step(raw_);
  if (answer != SQLITE_ROW && answer != SQLITE_DONE) owner_.fail();
  return answer == SQLITE_ROW;
}

int statement::run() {
  while (step()) {
  }
  return sqlite3_changes(owner_.raw());
}

void statement::reset() {
  sqlite3_reset(raw_);
  bound_ = 0;
}

std::int64_t statement::number(int column) const {
  return sqlite3_column_int64(raw_, column);
}

std::string statement::text(int column) const {
  const unsigned char* bytes = sqlite3_column_text(raw_, column);
  if (bytes == nullptr) return {};
  return {reinterpret_cast<const char*>(bytes), to_size(sqlite3_column_bytes(raw_, column))};
}

database::database(const std::filesystem::path& file) : file_(file) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  try {
    if (sqlite3_open_v2(file_.c_str(), &raw_, flags, nullptr) != SQLITE_OK) fail();
    refuse_read_only();
    sqlite3_extended_result_codes(raw_, 1);
    // Exclusive: one head per journal, and no shared memory file that a killed process leaves behind.
    execute("PRAGMA locking_mode = EXCLUSIVE");
    execute("PRAGMA foreign_keys = ON");
    execute("PRAGMA trusted_schema = OFF");  // the file may have been damaged, or made, by anyone
    execute("PRAGMA cell_size_check = ON");
    execute("PRAGMA auto_vacuum = INCREMENTAL");  // of a new journal; journal::sweep makes use of it
    execute("PRAGMA journal_mode = WAL");
    execute("PRAGMA synchronous = NORMAL");
    execute("PRAGMA journal_size_limit = 67108864");
    execute("BEGIN IMMEDIATE");
    execute("COMMIT");
  } catch (...) {
    sqlite3_close(raw_);
    throw;
  }
}

database::~database() {
  for (const auto& [sql, raw] : prepared_) sqlite3_finalize(raw);
  sqlite3_close(raw_);
}

/// SQLite opens what may not be written for reading, and then calls the log that cannot be made an error of the disk.
void database::refuse_read_only() const {
  if (sqlite3_db_readonly(raw_, "main") != 0)
    throw journal_failure(
        fmt::format("journal {}: may only be read{}", file_.string(), remedy_of(SQLITE_READONLY, file_)));
}

statement database::prepare(const char* sql) {
  sqlite3_stmt*& raw = prepared_[sql];
  if (raw == nullptr && sqlite3_prepare_v3(raw_, sql, -1, SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK) {
    fail();
  }
  return {*this, raw};
}

void database::execute(const char* sql) {
  if (sqlite3_exec(raw_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

std::int64_t database::number_of(const char* sql) {
  statement query = prepare(sql);
  return query.step() ? query.number(0) : 0;
}

void database::set_durable(bool durable) {
  if (durable == is_durable_) return;
  execute(durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
  is_durable_ = durable;
}

bool database::is_changing() const {
  return sqlite3_get_autocommit(raw_) == 0;
}

void database::check_is_there() const {
  int is_gone = 0;
  sqlite3_file_control(raw_, "main", SQLITE_FCNTL_HAS_MOVED, &is_gone);
  if (is_gone != 0)
    throw journal_failure(fmt::format(
        "journal {}: was removed or replaced while this head uses it, so nothing that is written to it would "
        "last: end the cluster, restore the folder, and start it again",
        file_.string()));
}

void database::fail() const {
  const int primary = raw_ ? sqlite3_errcode(raw_) & 0xff : SQLITE_NOMEM;
  const std::string text = fmt::format("journal {}: {}{}", file_.string(), raw_ ? sqlite3_errmsg(raw_) : "no memory",
                                       remedy_of(primary, file_));
  if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) throw journal_in_use(text);
  throw journal_failure(text);
}

transaction::transaction(database& db, kind how) : db_(db), is_open_(!db.is_changing()) {
  if (!is_open_) return;
  db_.check_is_there();
  db_.set_durable(how == kind::durable);
  db_.execute("BEGIN IMMEDIATE");
}

transaction::~transaction() {
  // A failure may have rolled back already; then there is nothing to do, and nothing to say.
  if (is_open_) sqlite3_exec(db_.raw(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void transaction::commit() {
  if (!is_open_) return;
  db_.execute("COMMIT");
  is_open_ = false;
}

}  // namespace troupe::detail
