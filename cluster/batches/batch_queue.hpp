// Which line of which batch job is answered next. No actor, no clock, no disk.
//
// Goals: tenants share the open lines (those that were read and have no output on the disk) by weight; a tenant's older
// job goes first. Lines that found no room come before all others, and while one of them waits no new line is read,
// since it would find no room either. Lines that failed for a reason that may pass (a disk without room for their
// adapter) wait aside, and only their own job reads no new ones until one of its lines has an output. Meanwhile they do
// not count against their tenant's share. A job of which one was tried often enough in vain tries no other one again,
// until one of its lines is answered: it would last for weeks.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {

class batch_queue {
 public:
  struct job {
    std::string id, tenant;
    std::string options;       ///< JSON; not looked into
    std::string endpoint;      ///< not looked into
    std::uint64_t weight = 1;  ///< of its tenant
  };
  struct line {
    std::string job;
    std::uint64_t index = 0;
    std::string text;
    int refusals = 0;
  };
  struct options {
    duration shortest_retry = std::chrono::milliseconds(100);  ///< before a refused line is tried again
    int most_tries = 70;           ///< of a line whose refusals do not say when to come back: an hour in all
    std::size_t most_aside = 512;  ///< lines of one job that wait aside
  };
  /// Returns a job's next lines without an output, from this one on; none if there are no more. next() passes on what
  /// it throws.
  using reader = std::function<std::vector<job_line>(const std::string& job, std::uint64_t from)>;

  batch_queue(options chosen, reader read) : options_(chosen), read_(std::move(read)) {}

  /// Adds a job at the end. A job that is here already stays as it is.
  void add(job added);
  /// nullptr if it is not here.
  const job* find(const std::string& id) const;
  /// Removes a job with all its lines that wait.
  void remove(const std::string& id);

  std::optional<line> next(instant now);
  /// How long to wait before a refused line is tried again: as long as its refusal says (`retry_after`), else longer
  /// each time, which is counted in the line. Nothing: it, or another line of its job, was tried often enough.
  std::optional<duration> wait_after(line& refused, duration retry_after);
  /// Takes back a line that found no room. There is no next line before `until`.
  void put_back(line refused, instant until);
  /// Takes back a line that failed: it comes again after `until`, and others meanwhile. Returns whether it is the first
  /// one of its job since an output.
  bool put_aside(line failed, instant until);
  /// The output of one of the job's lines is on the disk: an answer, or why there is none.
  void note_recorded(const std::string& job, bool is_answer = true);
  /// Jobs of which lines were read, and none is open or read ahead now: they may be over.
  std::vector<std::string> at_rest() const;

 private:
  struct entry {
    job spec;
    std::uint64_t number = 0;         ///< lower for older jobs
    std::uint64_t from = 0;           ///< the first line that was not read yet
    std::deque<job_line> ahead = {};  ///< lines that were read and whose turn has not come
    std::size_t open = 0;
    std::size_t aside = 0;     ///< of the open ones
    bool is_failing = false;   ///< a line was put aside, and none has had an output since
    bool is_hopeless = false;  ///< a line was tried often enough, and none was answered since
  };
  /// A tenant that has jobs here.
  struct share {
    std::deque<entry*> unread;       ///< jobs that are not read to their end, oldest first
    std::size_t jobs = 0, open = 0;  ///< open: without those that wait aside
  };
  /// The oldest job of a tenant of which new lines may be read.
  struct candidate {
    share* tenant = nullptr;
    entry* job = nullptr;

    double used() const { return static_cast<double>(tenant->open) / static_cast<double>(job->spec.weight); }
    bool goes_before(const candidate& other) const;
  };
  entry* oldest_to_read(const share& tenant) const;
  candidate whose_turn();
  std::optional<line> take_from(const candidate& turn);
  line take_from_aside();

  options options_;
  reader read_;
  std::unordered_map<std::string, entry> jobs_;  ///< by id
  std::map<std::string, share> shares_;          ///< by tenant, since thousands of jobs may wait when a line is chosen
  std::set<std::string> begun_;                  ///< jobs of which lines were read
  std::uint64_t added_ = 0;
  std::deque<line> again_;              ///< lines that found no room
  std::multimap<instant, line> aside_;  ///< those that failed, by when they come again
  instant paused_until_;
};

}  // namespace troupe
