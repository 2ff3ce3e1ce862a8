// A job, its lines, outputs and events, as the journal keeps them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace troupe {

inline constexpr const char* batch_kind = "batch";
inline constexpr const char* fine_tune_kind = "fine-tune";

struct job_spec {
  std::string id;    ///< letters, digits, '-' and '_', 1 to 64
  std::string kind;  ///< batch_kind or fine_tune_kind
  std::string tenant;
  std::string options;  ///< JSON; not looked into
  std::uint64_t lines = 0;
  std::string name = {};  ///< for people: a batch's file, a fine-tune's adapter; at most 4096 bytes

  bool is_batch() const { return kind == batch_kind; }
  /// By another name it is the same job.
  friend bool operator==(const job_spec& a, const job_spec& b) {
    return std::tie(a.id, a.kind, a.tenant, a.options, a.lines) == std::tie(b.id, b.kind, b.tenant, b.options, b.lines);
  }
};

/// `receiving`: not sealed, so not accepted yet. `paused`: until somebody resumes it. The file has the numbers of these
/// states, and the number after the last one for removed jobs.
enum class job_state : std::uint8_t { receiving, queued, running, succeeded, failed, cancelled, paused };
std::string_view name_of(job_state state);  ///< "receiving" …
std::optional<job_state> job_state_of(std::string_view name);
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
  std::string result;        ///< of a fine-tune that succeeded: the adapter's version, "pricing@3"
  std::uint64_t number = 0;  ///< its place among all jobs: newer ones have higher numbers
};

/// Which jobs a list has.
struct job_query {
  std::size_t limit = 1000;
  std::string kind = {};  ///< empty: all
  std::optional<std::string> tenant = {};
  std::string after = {};   ///< only jobs older than this one; empty: all
  std::uint64_t below = 0;  ///< only jobs with lower numbers, whether there is one with this number or not; 0: all
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

/// An output that is to be recorded.
struct line_record {
  std::string_view job;
  std::uint64_t index = 0;
  std::string_view text;
  bool ok = true;
};

inline constexpr const char* message_event = "message";
inline constexpr const char* metrics_event = "metrics";
inline constexpr const char* checkpoint_event = "checkpoint";

struct job_event {
  std::uint64_t number = 0;  ///< counts a job's events from 1
  std::int64_t at = 0;       ///< seconds since 1970
  std::string kind;          ///< message_event, metrics_event or checkpoint_event
  std::string text;          ///< JSON; not looked into
};

/// An event that is to be appended.
struct event_record {
  std::string_view kind, text;
};

}  // namespace troupe
