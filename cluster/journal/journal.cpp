// Opening, and jobs as a whole. Their lines: journal_lines.cpp. Their removal: journal_removal.cpp. Events and
// adapters: journal_records.cpp.
#include "cluster/journal/journal.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <fcntl.h>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "cluster/journal/journal_database.hpp"
#include "cluster/journal/journal_impl.hpp"

namespace troupe {
namespace {

void make_folder_of(const std::filesystem::path& file) {
  if (file.empty()) refuse("journal: no file is named");
  try {
    make_private_folder(file.parent_path());  // prompts and answers lie in it
  } catch (const write_failure& fault) {
    refuse("journal {}: {}", file.string(), fault.what());
  }
}

/// SQLite would remove the -wal file of a journal that is missing.
void check_before_opening(const journal::options& chosen) {
  std::error_code missing;
  if (std::filesystem::exists(chosen.file, missing) && !std::filesystem::is_empty(chosen.file, missing)) return;
  detail::check_is_first(chosen.file, {chosen.file.string() + "-wal"});
  detail::check_is_first(chosen.file, chosen.beside);
}

/// Whatever the folder lets others do: prompts and answers lie in it. SQLite makes its files beside it alike.
void make_private_file(const std::filesystem::path& file) {
  const file_descriptor made(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

std::unique_ptr<detail::database> open(const journal::options& chosen) {
  make_folder_of(chosen.file);
  check_before_opening(chosen);
  make_private_file(chosen.file);
  try {
    auto db = std::make_unique<detail::database>(chosen.file);
    detail::prepare_schema(*db, chosen.beside);
    return db;
  } catch (const journal_in_use& fault) {
    refuse("{}: another head uses it: stop that one, or name another file", fault.what());
  } catch (const journal_failure& fault) {
    refuse("{}", fault.what());
  }
}

std::optional<journal_error> check(const job_spec& spec, const journal::options& options) {
  if (!is_short_word(spec.id)) {
    return error(reason::invalid, "a job's id has 1 to 64 letters, digits, '-' or '_'");
  }
  if (!is_short_word(spec.kind, 32)) return error(reason::invalid, "job {}: its kind is no word", spec.id);
  if (spec.tenant.size() > 256) return error(reason::invalid, "job {}: its tenant's name is too long", spec.id);
  if (spec.name.size() > 4096) return error(reason::too_large, "job {}: its name has more than 4096 bytes", spec.id);
  if (spec.options.size() > options.max_options_bytes) {
    return error(reason::too_large, "job {}: options of {} bytes: at most {}", spec.id, spec.options.size(),
                 options.max_options_bytes);
  }
  if (spec.lines > options.max_lines) {
    return error(reason::too_large, "job {}: {} lines: at most {}: split it", spec.id, spec.lines, options.max_lines);
  }
  return {};
}

// Lists leave the options out: they may be long.
#define TROUPE_JOB_COLUMNS(options)   \
  "SELECT id, kind, tenant, " options \
  ", lines, state, received, line_ok, line_failed, created, finished, error, result, name, number FROM jobs "

job_info job_of(const statement& row) {
  job_info job;
  job.spec = {.id = row.text(0),
              .kind = row.text(1),
              .tenant = row.text(2),
              .options = row.text(3),
              .lines = row.count(4),
              .name = row.text(13)};
  job.state = static_cast<job_state>(std::clamp<std::int64_t>(row.number(5), 0, code_of(job_state::paused)));
  job.received = row.count(6);
  job.line_ok = row.count(7);
  job.line_failed = row.count(8);
  job.created = row.number(9);
  job.finished = row.number(10);
  job.error = row.text(11);
  job.result = row.text(12);
  job.number = row.count(14);
  return job;
}

constexpr std::array<std::string_view, 7> state_names{"receiving", "queued",    "running", "succeeded",
                                                      "failed",    "cancelled", "paused"};

std::vector<job_info> jobs_of(statement& rows) {
  std::vector<job_info> jobs;
  while (rows.step()) jobs.push_back(job_of(rows));
  return jobs;
}

}  // namespace

std::string_view name_of(job_state state) {
  return state_names[to_size(state)];
}

std::optional<job_state> job_state_of(std::string_view name) {
  for (std::size_t i = 0; i < state_names.size(); ++i)
    if (state_names[i] == name) return static_cast<job_state>(i);
  return {};
}

journal::journal(options chosen) : options_(std::move(chosen)), db_(open(options_)) {}

journal::~journal() = default;

std::int64_t journal::now() const {
  if (options_.wall_seconds) return options_.wall_seconds();
  using namespace std::chrono;
  return duration_cast<seconds>(system_clock::now().time_since_epoch()).count();
}

void journal::at_once(const std::function<void()>& calls) {
  try {
    transaction change(*db_, transaction::kind::durable);
    calls();
    change.commit();
  } catch (...) {
    removed_.clear();  // they are there again
    throw;
  }
  tell_removed();
}

void journal::check_writing() {
  transaction change(*db_, transaction::kind::quick);
  const std::int64_t version = db_->number_of("PRAGMA user_version");
  db_->execute(fmt::format("PRAGMA user_version = {}", version).c_str());  // SQLite writes that whatever was there
  change.commit();
}

result<job_info, journal_error> journal::create_job(const job_spec& spec) {
  if (const auto wrong = check(spec, options_)) return *wrong;
  if (auto known = find(spec.id)) {
    if (known->spec == spec) return *known;
    return error(reason::conflict, "job {}: exists with another content: take another id", spec.id);
  }
  if (open_jobs_of(spec.tenant) >= options_.max_open_jobs) {
    return error(reason::full, "job {}: {} jobs are not over, as many as one may have: cancel some, or wait", spec.id,
                 options_.max_open_jobs);
  }
  if (!make_room()) {
    return error(reason::full, "job {}: there are {} jobs, as many as may be, and none is over: cancel some", spec.id,
                 options_.max_jobs);
  }
  transaction change(*db_, transaction::kind::quick);
  (db_->prepare(
       "INSERT INTO jobs (id, kind, tenant, options, lines, name, state, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
   << spec.id << spec.kind << spec.tenant << spec.options << spec.lines << spec.name << code_of(job_state::receiving)
   << now())
      .run();
  change.commit();
  return *find(spec.id);
}

std::optional<job_info> journal::find(std::string_view id) const {
  statement query = db_->prepare(TROUPE_JOB_COLUMNS("options") "WHERE id = ? AND state <> " TROUPE_REMOVED);
  query << id;
  if (!query.step()) return {};
  return job_of(query);
}

std::vector<job_info> journal::list(const job_query& which) const {
  statement query = db_->prepare(TROUPE_JOB_COLUMNS(
      "''") "WHERE number < CASE ? WHEN '' THEN 9223372036854775807 ELSE (SELECT number FROM jobs WHERE id = ?) END "
            "AND number < ? AND ? IN ('', kind) AND (? OR tenant = ?) AND state <> " TROUPE_REMOVED
            " ORDER BY number DESC LIMIT ?");
  const std::string_view tenant = which.tenant ? *which.tenant : std::string_view();
  const std::uint64_t below = which.below > 0 ? which.below : UINT64_MAX;
  query << which.after << which.after << below << which.kind << std::int64_t{!which.tenant} << tenant
        << std::uint64_t{which.limit};
  return jobs_of(query);
}

std::vector<job_info> journal::foremost(std::size_t most) const {
#define TROUPE_FOREMOST " ORDER BY state = ?1 DESC, state IN (?2, ?3, ?4) DESC, number DESC"
  // The inner query needs the index alone, however many jobs there are.
  statement query = db_->prepare(
      TROUPE_JOB_COLUMNS("''") "WHERE number IN (SELECT number FROM jobs WHERE state <> " TROUPE_REMOVED TROUPE_FOREMOST
                               " LIMIT ?5)" TROUPE_FOREMOST);
#undef TROUPE_FOREMOST
  query << code_of(job_state::running) << code_of(job_state::receiving) << code_of(job_state::queued)
        << code_of(job_state::paused) << std::uint64_t{most};
  return jobs_of(query);
}

std::size_t journal::count() const {
  return to_size(db_->number_of("SELECT count(*) FROM jobs WHERE state <> " TROUPE_REMOVED));
}

std::vector<job_info> journal::unfinished() const {
  statement query = db_->prepare(TROUPE_JOB_COLUMNS("''") "WHERE state IN (?, ?, ?) ORDER BY number");
  query << code_of(job_state::queued) << code_of(job_state::running) << code_of(job_state::paused);
  return jobs_of(query);
}

result<job_info, journal_error> journal::seal(std::string_view id) {
  const auto job = find(id);
  if (!job) return detail::no_such_job(id);
  if (job->state != job_state::receiving) return *job;
  if (job->received < job->spec.lines) {
    return error(reason::wrong_state, "job {}: {} of {} lines are there: send the others first", id, job->received,
                 job->spec.lines);
  }
  const bool is_done = job->spec.lines == 0 && job->spec.is_batch();
  return change_state(id, is_done ? job_state::succeeded : job_state::queued, {});
}

result<job_info, journal_error> journal::start(std::string_view id) {
  const auto job = find(id);
  if (!job) return detail::no_such_job(id);
  if (job->state == job_state::running) return *job;
  if (job->state != job_state::queued) return error(reason::wrong_state, "job {}: is {}", id, name_of(job->state));
  return change_state(id, job_state::running, {});
}

result<job_info, journal_error> journal::pause(std::string_view id) {
  return hold(id, true);
}

result<job_info, journal_error> journal::resume(std::string_view id) {
  return hold(id, false);
}

result<job_info, journal_error> journal::hold(std::string_view id, bool on) {
  const auto job = find(id);
  if (!job) return detail::no_such_job(id);
  if (job->spec.is_batch()) return error(reason::wrong_state, "job {}: only fine-tuning can be paused", id);
  if (job->state == job_state::receiving || is_finished(job->state))
    return error(reason::wrong_state,
                 "job {}: its state is {}: only what waits, runs or is paused can be held or go on", id,
                 name_of(job->state));
  if (on == (job->state == job_state::paused)) return *job;
  return change_state(id, on ? job_state::paused : job_state::queued, {});
}

result<job_info, journal_error> journal::succeed(std::string_view id, std::string_view outcome) {
  return end_job(id, job_state::succeeded, {}, outcome);
}

result<job_info, journal_error> journal::finish(std::string_view id, job_state how, std::string_view why) {
  if (!is_finished(how)) return error(reason::invalid, "job {}: {} is no end", id, name_of(how));
  return end_job(id, how, why.substr(0, options_.max_event_bytes));
}

/// A job that is over stays as it is.
result<job_info, journal_error> journal::end_job(std::string_view id, job_state how, std::string_view why,
                                                 std::string_view outcome) {
  const auto job = find(id);
  if (!job) return detail::no_such_job(id);
  if (is_finished(job->state)) return *job;
  return change_state(id, how, why, outcome);
}

result<job_info, journal_error> journal::cancel(std::string_view id) {
  return finish(id, job_state::cancelled);
}

result<job_info, journal_error> journal::change_state(std::string_view id, job_state how, std::string_view why,
                                                      std::string_view outcome) {
  transaction change(*db_, transaction::kind::durable);
  (db_->prepare("UPDATE jobs SET state = ?, error = ?, result = ?, finished = ? WHERE id = ?")
   << code_of(how) << why << outcome << (is_finished(how) ? now() : 0) << id)
      .run();
  change.commit();
  if (is_finished(how)) ++endings_;
  return *find(id);
}

std::uint32_t journal::begin_reign() {
  transaction change(*db_, transaction::kind::durable);
  db_->execute("UPDATE heads SET reigns = reigns + 1");
  change.commit();
  return static_cast<std::uint32_t>(db_->number_of("SELECT reigns FROM heads"));
}

}  // namespace troupe
