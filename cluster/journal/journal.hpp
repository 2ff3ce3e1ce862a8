// Keeps what must not be lost: jobs, their lines, outputs and events, and the adapter catalogue. One SQLite file (WAL),
// owned by one journal and used by one thread.
//
// Goals
// - When `seal` returns, the job and all its lines are on the disk (synchronous = FULL). The same holds for cancel,
//   finish, events and the catalogue. Outputs, and lines before the seal, survive the death of the process at once, and
//   that of the machine after the next such write: an output that is lost there is computed again, with the same
//   result.
// - Exactly once: a line has at most one output, the first; recording another one changes nothing.
// - A caller that does not know whether a call arrived may repeat it.
// - A second journal on the same file, a broken file, and a file of another program or of a newer troupe are refused.
//   So is one that is missing or empty beside what an earlier one named: its jobs would be lost without a word.
//
// Mistakes of callers are returned as journal_error. If the disk fails, a journal_failure is thrown, and the call has
// changed nothing.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "cluster/journal/expiry_clock.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {

namespace detail {
class database;
}  // namespace detail

/// Disk full, I/O error, file damaged while in use.
class journal_failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Another process has the file.
class journal_in_use : public journal_failure {
 public:
  using journal_failure::journal_failure;
};

struct journal_error {
  enum class reason : std::uint8_t {
    invalid,      ///< an id, a size
    unknown,      ///< no such job
    conflict,     ///< the same id or line was given with other content before
    wrong_state,  ///< sealed already, not complete yet, finished
    too_large,
    full,
  };
  reason why = reason::invalid;
  std::string text;  ///< one line: cause and remedy
};

class journal {
 public:
  struct options {
    std::filesystem::path file;
    std::vector<std::filesystem::path> beside = {};     ///< folders of what it names, which a first journal finds empty
    std::function<std::int64_t()> wall_seconds = {};    ///< since 1970; empty: the system's clock
    std::function<std::int64_t()> passed_seconds = {};  ///< of a clock that never leaps; empty: a monotonic clock
    std::uint64_t max_lines = 1'000'000;                ///< of one job
    /// Jobs that are kept. To make room for a new one, one is removed that is over or not sealed: the oldest of the
    /// tenant who has most of them.
    std::size_t max_jobs = 10'000;
    std::size_t max_open_jobs = 5'000;                           ///< of one tenant, accepted and not over
    std::uint64_t max_tenant_bytes = UINT64_MAX;                 ///< of a named one's lines and outputs together
    std::function<void(const std::string& id)> on_removed = {};  ///< called when a job was removed
    std::size_t max_line_bytes = 8 << 20;
    std::size_t max_output_bytes = 32 << 20;
    std::size_t max_options_bytes = 1 << 20;
    std::size_t max_event_bytes = 1 << 20;
    std::uint64_t max_events = 100'000;  ///< of one job; only the newest are kept
    std::size_t page_bytes = 8 << 20;    ///< of text that one call returns, roughly; always at least one line
  };

  /// Opens the file or makes it. Throws input_error.
  explicit journal(options chosen);
  ~journal();

  /// Makes the changes of several calls one: all of them are on the disk when this returns, or none if `calls` throws
  /// or the disk fails.
  void at_once(const std::function<void()>& calls);

  /// Makes a job that receives lines. If it exists with the same spec, returns it.
  result<job_info, journal_error> create_job(const job_spec& spec);
  /// Adds the lines first, first + 1, …, without a gap. Lines that are there already must be the same. Returns how many
  /// lines there are now. A tenant with a name is refused more of them than max_tenant_bytes leave room for.
  result<std::uint64_t, journal_error> add_lines(std::string_view id, std::uint64_t first,
                                                 std::span<const std::string> lines);
  /// Accepts a job that has all its lines: it is queued, and on the disk. A sealed job stays as it is. A "batch"
  /// without lines succeeds.
  result<job_info, journal_error> seal(std::string_view id);

  std::optional<job_info> find(std::string_view id) const;
  /// Newest first, without their options.
  std::vector<job_info> list(const job_query& which = {}) const;
  /// Those that run, then those that wait or are paused, then those that are over; of each the newest first, without
  /// their options.
  std::vector<job_info> foremost(std::size_t most) const;
  std::size_t count() const;                 ///< of all jobs
  std::vector<job_info> unfinished() const;  ///< accepted and not over; oldest first, without their options
  /// Whether what is kept of a tenant's jobs leaves room for more. Outputs are recorded all the same.
  bool has_room(std::string_view tenant) const;

  /// queued → running. A running one stays.
  result<job_info, journal_error> start(std::string_view id);
  /// queued or running → paused → queued. Only for fine-tunes; a second call changes nothing.
  result<job_info, journal_error> pause(std::string_view id);
  result<job_info, journal_error> resume(std::string_view id);
  /// Ends a job without lines with its result. A finished one stays as it is.
  result<job_info, journal_error> succeed(std::string_view id, std::string_view outcome);
  /// Ends a job that has no lines to end it, or that cannot go on. A finished one stays as it is.
  result<job_info, journal_error> finish(std::string_view id, job_state how, std::string_view error = {});
  result<job_info, journal_error> cancel(std::string_view id);
  /// How many jobs were ended since this was opened, other than by their last output; also where it was taken back.
  std::uint64_t endings() const { return endings_; }

  /// Lines from index `from` on that have no output, in order. Empty if there are no more.
  std::vector<job_line> unfinished_lines(std::string_view id, std::uint64_t from, std::size_t limit) const;
  /// Records outputs in one transaction. Returns for each whether it was new: an output is not recorded twice, and not
  /// for a job that is unknown, not accepted or finished. With its last output a job succeeds. If one output is longer
  /// than max_output_bytes, none is recorded.
  result<std::vector<bool>, journal_error> record_all(std::span<const line_record> records);
  /// In order from index `from` on, up to the first line that has none yet; all that there are if the job is finished.
  std::vector<line_output> outputs(std::string_view id, std::uint64_t from, std::size_t limit,
                                   std::size_t most_bytes = SIZE_MAX) const;

  /// Returns the event's number.
  result<std::uint64_t, journal_error> append_event(std::string_view id, std::string_view kind, std::string_view text);
  /// Appends several in one transaction. Returns the number of the last.
  result<std::uint64_t, journal_error> append_events(std::string_view id, std::span<const event_record> events);
  std::vector<job_event> events(std::string_view id, std::uint64_t after, std::size_t limit) const;
  /// Those with a lower number, newest first.
  std::vector<job_event> events_before(std::string_view id, std::uint64_t number, std::size_t limit) const;
  std::optional<job_event> last_event(std::string_view id, std::string_view kind) const;

  /// Removes a job with its lines, outputs and events: nobody finds it any more. One that is queued or running must be
  /// cancelled first.
  result<bool, journal_error> remove(std::string_view id);
  /// Removes jobs that finished so long ago, by an expiry_clock. Returns how many it removed, at most `limit`.
  std::size_t remove_old(std::chrono::seconds age, std::size_t limit = 100);
  /// The same for those that were created so long ago and never sealed.
  std::size_t remove_unsealed(std::chrono::seconds age, std::size_t limit = 100);
  /// Deletes lines, outputs and events of removed jobs: about so many bytes, and each counts as one page at least.
  /// Nobody can use the journal meanwhile, and a job may have a million of them, or gigabytes, so this is done piece by
  /// piece; and so is the file made smaller then. Returns whether there is more to do.
  bool sweep(std::size_t bytes = 16 << 20);

  /// Writes what changes nothing: throws journal_failure where nothing can be written.
  void check_writing();

  void save(const catalogue_records& changes);
  catalogue_records load_catalogue() const;
  /// The tenant whom an adapter's name was given to. Empty if that is nobody: whoever published it was no tenant.
  /// Nothing if the name was neither given nor published.
  std::optional<std::string> owner_of_adapter(std::string_view name) const;
  /// Unless it was given before.
  void give_adapter(std::string_view name, std::string_view owner);

  /// Counts the starts of a head on this file from 1: the high half of its first epoch.
  std::uint32_t begin_reign();

 private:
  bool give_back(std::size_t bytes);
  std::int64_t now() const;
  std::int64_t expiry_now();
  std::optional<std::int64_t> last_expiry() const;
  result<job_info, journal_error> change_state(std::string_view id, job_state how, std::string_view error,
                                               std::string_view outcome = {});
  result<job_info, journal_error> end_job(std::string_view id, job_state how, std::string_view why,
                                          std::string_view outcome = {});
  result<job_info, journal_error> hold(std::string_view id, bool on);
  bool make_room();
  std::size_t open_jobs_of(std::string_view tenant) const;
  std::uint64_t bytes_of(std::string_view tenant) const;
  std::optional<journal_error> check_room(const job_info& job, std::span<const std::string> lines) const;
  void remove_all(const std::vector<std::string>& ids);
  void tell_removed();

  options options_;
  std::unique_ptr<detail::database> db_;
  std::optional<expiry_clock> expiry_;  ///< made when old jobs are first asked for
  std::vector<std::string> removed_;    ///< jobs of whose removal nobody was told yet
  std::uint64_t endings_ = 0;
};

}  // namespace troupe
