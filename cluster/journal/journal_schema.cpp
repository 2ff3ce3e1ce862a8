#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "cluster/journal/journal_database.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t application = 0x54525550;  // "TRUP", in the file's head

// Step n makes version n + 1 of version n. Never change one that was released: add the next.
constexpr std::array migrations{
    R"(
CREATE TABLE heads (reigns INTEGER NOT NULL, next_version INTEGER NOT NULL);
INSERT INTO heads VALUES (0, 1);

CREATE TABLE jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  tenant TEXT NOT NULL,
  options TEXT NOT NULL,
  lines INTEGER NOT NULL,
  state INTEGER NOT NULL,
  received INTEGER NOT NULL DEFAULT 0,
  line_ok INTEGER NOT NULL DEFAULT 0,
  line_failed INTEGER NOT NULL DEFAULT 0,
  created INTEGER NOT NULL,
  finished INTEGER NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT ''
);
CREATE INDEX jobs_by_state ON jobs (state, number);

CREATE TABLE lines (
  job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
  line INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job, line)
);

CREATE TABLE outputs (
  job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
  line INTEGER NOT NULL,
  ok INTEGER NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job, line)
);

CREATE TABLE events (
  job INTEGER NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job, number)
);
CREATE INDEX events_by_kind ON events (job, kind, number);

CREATE TABLE adapters (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  folder TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  base INTEGER NOT NULL,
  state INTEGER NOT NULL,
  error TEXT NOT NULL,
  UNIQUE (name, ordinal)
);

CREATE TABLE adapter_names (
  name TEXT PRIMARY KEY,
  current INTEGER NOT NULL,
  newest INTEGER NOT NULL,
  next INTEGER NOT NULL
) WITHOUT ROWID;
)",
    R"(ALTER TABLE jobs ADD COLUMN result TEXT NOT NULL DEFAULT '')",
    R"(ALTER TABLE heads ADD COLUMN expired_to INTEGER NOT NULL DEFAULT 0)",
    R"(ALTER TABLE adapters DROP COLUMN folder)", R"(ALTER TABLE jobs ADD COLUMN name TEXT NOT NULL DEFAULT '')",
    // Of what was published before, the oldest fine-tune that succeeded (3) and is still known says whose it is.
    R"(
CREATE TABLE adapter_owners (
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL
) WITHOUT ROWID;
INSERT OR IGNORE INTO adapter_owners
  SELECT substr(result, 1, instr(result, '@') - 1), tenant FROM jobs
  WHERE kind = 'fine-tune' AND state = 3 AND tenant <> '' ORDER BY number;
)"};

void check_is_ours(database& db, const std::vector<std::filesystem::path>& beside) {
  const bool is_new = db.number_of("SELECT count(*) FROM sqlite_schema") == 0;
  if (is_new) check_is_first(db.file(), beside);  // all of a young journal is in the -wal file, which may be lost
  if (!is_new && db.number_of("PRAGMA application_id") != application) {
    refuse("journal {}: is a database of another program: name another file", db.file().string());
  }
  const std::int64_t version = db.number_of("PRAGMA user_version");
  if (version < 0 || version > static_cast<std::int64_t>(migrations.size())) {
    refuse("journal {}: has version {}, this troupe knows up to {}: install a newer troupe, or name another file",
           db.file().string(), version, migrations.size());
  }
}

void check_is_whole(database& db) {
  statement check = db.prepare("PRAGMA quick_check(1)");
  const std::string answer = check.step() ? check.text(0) : "no answer";
  if (answer != "ok")
    refuse("journal {}: is damaged ({}): {}", db.file().string(), answer, remedy_of_damaged(db.file()));
}

}  // namespace

void check_is_first(const std::filesystem::path& file, const std::vector<std::filesystem::path>& beside) {
  std::error_code none;
  for (const std::filesystem::path& left : beside)
    if (std::filesystem::exists(left, none) && !std::filesystem::is_empty(left, none))
      refuse(
          "journal {}: is missing or empty, but {} is left of an earlier one: restore it, with its -wal file if there "
          "was one, or move the folder {} away to begin anew",
          file.string(), left.string(), file.parent_path().string());
}

void prepare_schema(database& db, const std::vector<std::filesystem::path>& beside) {
  constexpr std::uintmax_t quickly_checked = 64 << 20;  // with a longer file a start would take seconds
  check_is_ours(db, beside);
  std::error_code unknown;
  if (std::filesystem::file_size(db.file(), unknown) <= quickly_checked) check_is_whole(db);
  const auto version = to_size(db.number_of("PRAGMA user_version"));
  if (version == migrations.size()) return;
  transaction change(db, transaction::kind::durable);
  for (std::size_t step = version; step < migrations.size(); ++step) db.execute(migrations[step]);
  db.execute(fmt::format("PRAGMA application_id = {}", application).c_str());
  db.execute(fmt::format("PRAGMA user_version = {}", migrations.size()).c_str());
  change.commit();
}

}  // namespace troupe::detail
