// Jobs that go: at once for those who look for them, piece by piece on the disk; and the clock by which they are old.
#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/to_size.hpp"
#include "cluster/journal/journal.hpp"
#include "cluster/journal/journal_database.hpp"
#include "cluster/journal/journal_impl.hpp"

namespace troupe {
namespace {

std::vector<std::string> texts_of(statement& rows) {
  std::vector<std::string> texts;
  while (rows.step()) texts.push_back(rows.text(0));
  return texts;
}

struct job_table {
  const char* sizes;  ///< of a job's rows
  const char* deletion;
};
constexpr std::array<job_table, 3> tables_of_jobs{
    {{"SELECT line, length(text) FROM outputs WHERE job = ? ORDER BY line",
      "DELETE FROM outputs WHERE job = ? AND line <= ?"},
     {"SELECT line, length(text) FROM lines WHERE job = ? ORDER BY line",
      "DELETE FROM lines WHERE job = ? AND line <= ?"},
     {"SELECT number, length(text) FROM events WHERE job = ? ORDER BY number",
      "DELETE FROM events WHERE job = ? AND number <= ?"}}};

/// Deletes a job's first rows with about so many bytes. Returns how many these had.
std::size_t delete_rows(detail::database& db, const job_table& table, std::int64_t job, std::size_t bytes) {
  constexpr std::size_t own_bytes = 4096;  // a short row takes about as long as a page
  std::size_t taken = 0;
  std::int64_t last = 0;
  {
    statement rows = db.prepare(table.sizes);
    for (rows << job; taken < bytes && rows.step(); taken += own_bytes + to_size(rows.number(1))) last = rows.number(0);
  }
  if (taken > 0) (db.prepare(table.deletion) << job << last).run();
  return taken;
}

}  // namespace

result<bool, journal_error> journal::remove(std::string_view id) {
  const auto job = find(id);
  if (!job) return false;
  if (job->state != job_state::receiving && !is_finished(job->state)) {
    return error(reason::wrong_state, "job {}: is {}: cancel it first", id, name_of(job->state));
  }
  remove_all({job->spec.id});
  return true;
}

/// If there are as many jobs as may be, removes one that is finished or was never sent whole: the oldest of the tenant
/// who has most of them, so that nobody's go for another's. Returns false if there is none.
bool journal::make_room() {
  if (count() < options_.max_jobs) return true;
  statement query = db_->prepare(
      "WITH idle AS (SELECT id, number, tenant, max(created, finished) AS age FROM jobs WHERE (finished > 0 OR state = "
      "?) AND state <> " TROUPE_REMOVED
      ") SELECT id FROM idle WHERE tenant = (SELECT tenant FROM idle GROUP BY tenant ORDER BY count(*) DESC LIMIT 1)"
      " ORDER BY age, number LIMIT 1");
  query << code_of(job_state::receiving);
  const auto oldest = texts_of(query);
  remove_all(oldest);
  return !oldest.empty();
}

std::size_t journal::open_jobs_of(std::string_view tenant) const {
  statement query = db_->prepare("SELECT count(*) FROM jobs WHERE state IN (?, ?, ?) AND tenant = ?");
  query << code_of(job_state::queued) << code_of(job_state::running) << code_of(job_state::paused) << tenant;
  query.step();
  return to_size(query.count(0));
}

std::size_t journal::remove_old(std::chrono::seconds age, std::size_t limit) {
  statement query =
      db_->prepare("SELECT id FROM jobs WHERE state <> " TROUPE_REMOVED " AND finished > 0 AND finished <= ? LIMIT ?");
  query << expiry_now() - age.count() << std::uint64_t{limit};
  const auto old = texts_of(query);
  remove_all(old);
  return old.size();
}

std::size_t journal::remove_unsealed(std::chrono::seconds age, std::size_t limit) {
  statement query = db_->prepare("SELECT id FROM jobs WHERE state = ? AND created <= ? LIMIT ?");
  query << code_of(job_state::receiving) << expiry_now() - age.count() << std::uint64_t{limit};
  const auto old = texts_of(query);
  remove_all(old);
  return old.size();
}

void journal::remove_all(const std::vector<std::string>& ids) {
  if (ids.empty()) return;
  transaction change(*db_, transaction::kind::quick);
  for (const std::string& id : ids)
    (db_->prepare("UPDATE jobs SET id = '~' || number, state = " TROUPE_REMOVED " WHERE id = ?") << id).run();
  change.commit();
  removed_.insert(removed_.end(), ids.begin(), ids.end());
  tell_removed();
}

/// Their files may go once it is certain that they do.
void journal::tell_removed() {
  if (db_->is_changing()) return;
  for (const std::string& id : std::exchange(removed_, {}))
    if (options_.on_removed) options_.on_removed(id);
}

bool journal::sweep(std::size_t bytes) {
  const std::int64_t job = db_->number_of("SELECT number FROM jobs WHERE state = " TROUPE_REMOVED " LIMIT 1");
  if (job == 0) return give_back(bytes);
  transaction change(*db_, transaction::kind::quick);
  for (const auto& table : tables_of_jobs) bytes -= std::min(bytes, delete_rows(*db_, table, job, bytes));
  if (bytes > 0) (db_->prepare("DELETE FROM jobs WHERE number = ?") << job).run();
  change.commit();
  return true;
}

/// To the disk, from the file's end. A quarter stays for what comes. Journals of earlier builds keep all that they ever
/// took.
bool journal::give_back(std::size_t bytes) {
  constexpr std::int64_t page_bytes = 4096, least = (1 << 20) / page_bytes;
  const auto unused = [&] { return db_->number_of("PRAGMA freelist_count"); };
  const std::int64_t before = unused();
  if (before < std::max(least, db_->number_of("PRAGMA page_count") / 4)) return false;
  const std::size_t pages = std::max<std::size_t>(bytes / page_bytes, 1);  // 0 would be all of them at once
  db_->execute(fmt::format("PRAGMA incremental_vacuum({})", pages).c_str());
  return unused() < before;
}

/// Begins where the clock of an earlier life stood, since that time is certainly over.
std::int64_t journal::expiry_now() {
  using namespace std::chrono;
  const std::int64_t wall = now();
  const std::int64_t passed = options_.passed_seconds
                                  ? options_.passed_seconds()
                                  : duration_cast<seconds>(monotonic_clock().now().since_start).count();
  if (!expiry_)
    expiry_.emplace(std::min(wall, last_expiry().value_or(wall)), passed,
                    db_->number_of("SELECT doubted_for FROM heads"));
  const std::int64_t time = expiry_->read(wall, passed), doubted = expiry_->doubted_for();
  (db_->prepare("UPDATE heads SET expired_to = ?, doubted_for = ? WHERE expired_to <> ? OR doubted_for <> ?")
   << time << doubted << time << doubted)
      .run();
  return time;
}

/// Where the clock stood in the last life; in a journal of an earlier build, which does not say that, the newest job's
/// time.
std::optional<std::int64_t> journal::last_expiry() const {
  for (const char* time : {"SELECT expired_to FROM heads", "SELECT ifnull(max(max(created, finished)), 0) FROM jobs"})
    if (const std::int64_t found = db_->number_of(time)) return found;
  return {};
}

}  // namespace troupe
