// Batch jobs: accepted into the journal, answered line by line through the gateway, recorded exactly once.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/jobs/batch_line.hpp"
#include "actors/status_board.hpp"
#include "cluster/batches/batch_queue.hpp"
#include "cluster/batches/unrecorded_outputs.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe {

class command_fields;  // command_fields_impl.hpp

struct jobs_parts {
  std::shared_ptr<journal> book;
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<request_numbers> numbers;
  std::shared_ptr<status_board> board;
  endpoint_line_reader read_for_endpoint = {};  ///< without it only lines of our own form are read
  /// Told when the journal or a job's lines begin to fail, and when the journal works again.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
  batch_queue::options queue = {};
  unrecorded_outputs::options unrecorded = {};
  std::size_t in_flight = 512;                            ///< lines for each replica: enough to fill its batches
  std::size_t answers_in_flight = 1 << 13;                ///< of all of these; a line may ask for many
  std::size_t record_at_once = 256;                       ///< outputs in one transaction, at most
  duration record_after = std::chrono::milliseconds(20);  ///< outputs are written after so long, even if they are fewer
  duration post_interval = std::chrono::milliseconds(200);      ///< between updates of the board
  duration journal_retry = std::chrono::seconds(1);             ///< between attempts while the disk fails
  std::chrono::seconds keep = {};                               ///< how long jobs that are over stay; 0: for ever
  std::chrono::seconds keep_unsealed = std::chrono::hours(24);  ///< those whose lines do not all arrive
  duration sweep_interval = std::chrono::minutes(1);            ///< between searches for jobs to remove
  duration sweep_pause = std::chrono::milliseconds(50);  ///< between pieces of a removal, so that others get their turn
};

/// Owner of the journal, on a thread of its own. Other actors that have something to write ask this one.
class jobs_state {
 public:
  using handle = jobs_actor;
  static constexpr const char* name = "jobs";

  jobs_state(handle::pointer self, jobs_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct line : batch_queue::line {  // in progress
    std::string custom_id = {};      ///< read together with the line
    std::unique_ptr<answer_format> format = {};
    std::vector<request_id> requests = {};  ///< the first one names the line
    std::size_t answers = 0;
  };

  // jobs_commands.cpp
  std::string carry_out(const client_command& command);
  std::string result_of(const client_command& command, const command_fields& arguments);
  std::string create(const command_fields& from);
  std::string add_lines(const command_fields& from);
  std::string seal(const std::string& id);
  std::string cancel(const job_info& asked);
  std::string forget(const job_info& job);
  std::string outputs(const job_info& job, const command_fields& from) const;
  std::string list(const std::vector<job_info>& jobs, bool with_options) const;
  std::string events(const job_info& job, const command_fields& from) const;
  std::string tell_of_change(const job_info& job);

  // jobs.cpp: lines
  void go_on(const begin_jobs& begun);
  void take_up();
  void activate(const job_info& job);
  std::vector<job_line> read_lines(const std::string& job, std::uint64_t from);
  void pump();
  void begin(line next);
  bool has_room_on_disk(const batch_queue::job& job) const;
  batch_line read(const batch_queue::line& from, const batch_queue::job& job) const;
  void send(line begun, const answer_order& order, std::vector<begin_request> requests);
  void end_requests(const line& ended);
  void take_answer(const line_answered& answered);
  void take_refusal(const request_refused& why);
  void take_back(line refused, const request_refused& why, instant until);
  void keep_output(const line& from, std::string text, bool ok);
  void drop_lines_of(const std::string& id);
  bool has_room() const;

  // jobs_journal.cpp
  void record_soon();
  void record();
  bool end_complete_jobs();
  void note_failure(const journal_failure& failure);
  bool can_write();
  void try_all_again();
  void sweep();
  void wake_in(duration after);
  void post();
  void post_soon();
  void use(const use_journal& order);
  bool try_to_use(const use_journal& order);
  void use_again();
  void save(const save_catalogue& order);

  handle::pointer self_;
  jobs_parts parts_;
  gateway_actor gateway_;  ///< these two are set by begin_jobs
  training_desk_actor training_;
  actor_clock clock_{self_};

  batch_queue queue_;
  std::unordered_map<request_id, line> in_flight_;  ///< by the first of their requests
  unrecorded_outputs outputs_;
  std::deque<use_journal> unused_;  ///< that the disk did not take, in order
  bool is_to_take_up_ = false, record_due_ = false, post_due_ = false, pump_due_ = false;
  bool is_failing_ = false;  ///< people were told that the journal fails, and not yet that it works again
  bool will_retry_ = false;  ///< it failed in the last attempt, and the next one is on its way
  std::uint64_t posted_endings_ = 0;
  instant posted_, sweep_at_, retry_at_;
};

jobs_actor spawn_jobs(caf::actor_system& system, jobs_parts parts);

}  // namespace troupe
