// What must not be lost: jobs, their lines and outputs, their events, and the adapter catalogue. One SQLite file (WAL),
// owned by one journal, used by one thread.
//
// Goals
// - When `seal` returns, the job and all its lines are on the disk (synchronous = FULL). So are cancel, finish, events
//   and the catalogue. Outputs and lines before the seal are safe against the death of the process at once, and against
//   that of the machine with the next such write: an output lost there is computed again, and comes out the same.
// - Exactly once: a line has at most one output, the first; recording it again changes nothing.
// - Everything may be repeated by a caller that does not know whether it was heard.
// - A second journal on the same file, a broken file, a file of another program or of a newer troupe: refused.
//
// What a caller may get wrong comes back as journal_error. Where the disk fails, a journal_failure is thrown; the call
// has then changed nothing.
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

namespace troupe {

namespace detail {
class database;
class statement;
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

struct job_spec {
  std::string id;    ///< letters, digits, '-' and '_', 1 to 64
  std::string kind;  ///< "batch", "fine-tune"
  std::string tenant;
  std::string options;  ///< JSON, not looked into
  std::uint64_t lines = 0;

  friend bool operator==(const job_spec&, const job_spec&) = default;
};

/// `receiving`: not sealed, thus not accepted. `paused`: goes on when somebody says so. The numbers are stored in the
/// file, where the number after the last marks removed jobs.
enum class job_state : std::uint8_t { receiving, queued, running, succeeded, failed, cancelled, paused };
std::string_view name_of(job_state state);
constexpr bool is_finished(job_state state) {
  return state == job_state::succeeded || state == job_state::failed || state == job_state::cancelled;
}

struct job_info {
  job_spec spec;
  job_state state = job_state::receiving;
  std::uint64_t received = 0;                  ///< lines
  std::uint64_t line_ok = 0, line_failed = 0;  ///< lines with an output
  std::int64_t created = 0, finished = 0;      ///< seconds since 1970; 0: not yet
  std::string error;
  std::string result;  ///< of a fine-tune that succeeded: the adapter's version, "pricing@3"
};

struct job_line {
  std::uint64_t index = 0;
  std::string text;
};

struct line_output {
  std::uint64_t index = 0;
  std::string text;
  bool ok = true;
};

/// An output on its way in.
struct line_record {
  std::string_view job;
  std::uint64_t index = 0;
  std::string_view text;
  bool ok = true;
};

struct job_event {
  std::uint64_t number = 0;  ///< counts a job's events from 1
  std::int64_t at = 0;       ///< seconds since 1970
  std::string kind;          ///< "message", "metrics", "checkpoint"
  std::string text;          ///< JSON, not looked into
};

/// An event on its way in.
struct event_record {
  std::string_view kind, text;
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
    std::function<std::int64_t()> wall_seconds = {};    ///< since 1970; without it the system's clock
    std::function<std::int64_t()> passed_seconds = {};  ///< never leap; without it a monotonic clock's
    std::uint64_t max_lines = 1'000'000;                ///< of one job
    std::size_t max_jobs = 10'000;  ///< kept, finished ones too: the oldest of those goes for a new one
    std::function<void(const std::string& id)> on_removed = {};  ///< told when a job is gone
    std::size_t max_line_bytes = 8 << 20;
    std::size_t max_output_bytes = 32 << 20;
    std::size_t max_options_bytes = 1 << 20;
    std::size_t max_event_bytes = 1 << 20;
    std::uint64_t max_events = 100'000;  ///< kept of one job: the newest
    std::size_t page_bytes = 8 << 20;    ///< of text that one call returns, about; always at least one line
  };

  /// Opens the file or makes it. Throws input_error.
  explicit journal(options chosen);
  ~journal();

  /// A job that receives lines. The same spec again returns what there is.
  result<job_info, journal_error> create_job(const job_spec& spec);
  /// Lines first, first + 1, …; no gaps. Lines that are there already are compared. Returns how many there are now.
  result<std::uint64_t, journal_error> add_lines(std::string_view id, std::uint64_t first,
                                                 std::span<const std::string> lines);
  /// All lines are there: accepted, queued, durable. A sealed job stays as it is. A "batch" without lines succeeds.
  result<job_info, journal_error> seal(std::string_view id);

  std::optional<job_info> find(std::string_view id) const;
  /// Newest first, without their options. Of one kind and of one tenant, and those older than the job `after`, if they
  /// are said.
  std::vector<job_info> list(std::size_t limit = 1000, std::string_view kind = {},
                             std::optional<std::string_view> tenant = {}, std::string_view after = {}) const;
  std::vector<job_info> unfinished() const;  ///< accepted, oldest first, without options: to go on with after a start

  /// queued → running. A running one stays.
  result<job_info, journal_error> start(std::string_view id);
  /// queued or running → paused → queued. Only jobs of trainers; done twice it changes nothing.
  result<job_info, journal_error> pause(std::string_view id);
  result<job_info, journal_error> resume(std::string_view id);
  /// Ends a job without lines well, with what came out. A finished one stays as it is.
  result<job_info, journal_error> succeed(std::string_view id, std::string_view outcome);
  /// Ends a job that has no lines to end it, or that cannot go on. A finished one stays as it is.
  result<job_info, journal_error> finish(std::string_view id, job_state how, std::string_view error = {});
  result<job_info, journal_error> cancel(std::string_view id);

  /// Lines from index `from` on that have no output, in order. Empty: no more of them.
  std::vector<job_line> unfinished_lines(std::string_view id, std::uint64_t from, std::size_t limit) const;
  /// For each whether it was recorded now: not twice, and not for jobs that are unknown, not accepted or finished. With
  /// a job's last output the job has succeeded. One transaction. Outputs beyond max_output_bytes are an error of all.
  result<std::vector<bool>, journal_error> record_all(std::span<const line_record> records);
  /// In order from index `from` on, up to the first line that has none yet; of a finished job, all there are.
  std::vector<line_output> outputs(std::string_view id, std::uint64_t from, std::size_t limit) const;

  /// Returns the event's number.
  result<std::uint64_t, journal_error> append_event(std::string_view id, std::string_view kind, std::string_view text);
  /// Several at once, in one transaction. Returns the last one's number.
  result<std::uint64_t, journal_error> append_events(std::string_view id, std::span<const event_record> events);
  std::vector<job_event> events(std::string_view id, std::uint64_t after, std::size_t limit) const;
  std::optional<job_event> last_event(std::string_view id, std::string_view kind) const;

  /// With lines, outputs and events: nobody finds it any more. A job that is queued or running stays: cancel it first.
  result<bool, journal_error> remove(std::string_view id);
  /// Jobs that finished so long ago, or were created so long ago and never sealed, by a clock that believes no leap of
  /// the system's for a day (expiry_clock). Returns how many went, at most `limit`.
  std::size_t remove_old(std::chrono::seconds age, std::size_t limit = 100);
  /// Deletes about so many lines, outputs and events of removed jobs. Piece by piece, because nobody else can use the
  /// journal meanwhile and a job may have a million of them. Returns whether there is more.
  bool sweep(std::size_t rows = 10'000);

  void save(const catalogue_records& changes);
  catalogue_records load_catalogue() const;

  /// Counts the starts of a head on this file from 1: the high half of its first epoch.
  std::uint32_t begin_reign();

 private:
  std::int64_t now() const;
  std::int64_t expiry_now();
  std::optional<std::int64_t> last_expiry() const;
  result<job_info, journal_error> change_state(std::string_view id, job_state how, std::string_view error,
                                               std::string_view outcome = {});
  result<job_info, journal_error> hold(std::string_view id, bool on);
  bool make_room();
  void remove_all(const std::vector<std::string>& ids);

  options options_;
  std::unique_ptr<detail::database> db_;
  std::optional<expiry_clock> expiry_;  ///< since somebody asked for what is old
};

}  // namespace troupe
