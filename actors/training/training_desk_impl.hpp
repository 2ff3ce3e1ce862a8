#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/task_thread.hpp"
#include "actors/training/event_backlog.hpp"
#include "actors/training/training_desk.hpp"
#include "actors/training/training_files.hpp"
#include "cluster/journal/journal.hpp"
#include "cluster/training/training_pace.hpp"

namespace troupe {

/// Runs on a thread of its own, since it waits for the disk; data is read whole on yet another one. The journal is the
/// truth, and the jobs actor owns it: whatever happens to a job is first written there, by functions that run on the
/// journal's thread and then tell this actor to carry on.
class training_desk_state {
 public:
  using handle = training_desk_actor;
  static constexpr const char* name = "training";

  training_desk_state(handle::pointer self, training_desk_parts parts);
  handle::behavior_type make_behavior();

 private:
  /// A job that was accepted and is not over.
  struct record {
    training_spec spec;
    std::string spec_text;
    std::vector<training_file> files;         ///< none yet: an earlier head has accepted the job
    fine_tune_figures figures;                ///< post() fills in the rest
    fine_tune_mark noted;                     ///< what the journal has of it, or soon will
    std::optional<instant> awaited_since;     ///< others are free, and it waits for its trainer
    std::optional<training_download> result;  ///< the result while it is being fetched
    instant moved;                            ///< when the last step was made, or the lease began
    bool is_said_to_wait = false;
    std::shared_ptr<std::atomic<bool>> is_over = std::make_shared<std::atomic<bool>>(false);
    event_backlog events;
  };
  /// What a client wants to have trained.
  struct order {
    std::string job, tenant;
    std::string options;                          ///< the spec, as text
    std::string adapter, owner;                   ///< as the spec has them, which nobody has checked yet
    std::function<bool()> is_wanted;              ///< whether somebody still waits for the answer
    std::optional<std::string> data, validation;  ///< files of /v1/files; nothing: the data was sent in pieces
    std::string data_sha256, validation_sha256;   ///< empty: unknown
  };
  /// A job that is being made, and who waits for that.
  struct making {
    std::string owner;
    std::vector<std::function<void(command_answer)>> askers;
  };
  struct trainer {
    trainer_actor actor;
    std::string meeting;
  };
  /// A lease that holds, and its job.
  struct leased {
    training_queue::lease lease;
    record& job;
  };

  // training_desk.cpp: leases
  void begin(const begin_training& begun);
  void take_change(const job_changed& changed);
  void assign();
  void give(const training_queue::group& leases);
  bool knows_data_of(const std::string& id);
  void send_orders(const record& job, const training_queue::group& leases);
  void stop_leases(const training_queue::group& ended);
  void tell_what_to_keep(const std::string& name);
  void lose_trainer(const trainer_lost& lost);
  void pace_trainers();
  void say_who_waits();
  void note_awaited();
  void give_up_awaited();
  void look_again();
  void post() const;
  template <class Message>
  void tell_trainer(const training_queue::lease& lease, Message message);
  std::optional<leased> find_leased(training_lease number);
  record* find(const std::string& id);

  // training_desk_commands.cpp: commands of clients
  void run(command_call& call);
  std::string take_data(const std::string& arguments);
  void create(const command_call& call);
  static order read_order(const std::string& arguments);
  void create_unknown(const order& asked, const std::optional<std::string>& owner_of_name);
  void check_share(const std::string& owner) const;
  void check_name(const order& asked, const std::optional<std::string>& owner_of_name) const;
  void check_size(const training_spec& spec) const;
  void accept(const order& asked);
  void make_job(const std::string& id, const std::string& tenant, training_spec spec,
                const training_intake::summary& found);
  void refuse_job(const std::string& id, const command_answer& why);
  void take_in(const job_info& made, const training_spec& spec, const training_intake::summary& found);
  void answer_create(const std::string& id, const command_answer& answer);

  // training_desk_results.cpp: reports of trainers, and their results
  void take_progress(const training_progress& progress);
  void note_points(const training_queue::lease& lease, record& job, const training_progress& progress);
  void take_end(const training_ended& ended);
  void fall_apart(const training_queue::lease& from, const std::string& why);
  void take_result(const training_queue::lease& from, const std::vector<training_file>& files);
  void take_piece(const training_piece& piece);
  void fetch_result(const std::string& id);
  void publish(const std::string& id);
  void take_published(const std::string& id, const adapter_published& made);
  void try_fetching(const std::string& id, const std::function<void()>& work);
  void pause_with(const std::string& id, const std::string& why);
  void fail(const std::string& id, const std::string& error);
  void end(const std::string& id);
  void note_event(const std::string& id, std::string kind, std::string text);
  void write_events(const std::string& id);
  std::vector<noted_event> last_events(const std::string& id, std::string message);
  template <class Ending>
  void end_in_journal(const std::string& id, std::string message, Ending ending);
  template <class Use>
  void ask_journal(Use use, std::function<void(decltype(use(std::declval<journal&>())))> then,
                   std::function<void(const std::string& why)> otherwise = {});

  handle::pointer self_;
  training_desk_parts parts_;
  training_intake intake_;
  training_queue queue_;
  training_pace pace_;
  double share_ = 1;
  bool is_looking_ = false;
  actor_clock clock_{self_};
  std::map<std::string, trainer> trainers_;
  std::map<std::string, record> jobs_;
  std::map<std::string, making> creating_;  ///< by the job's id
  task_thread reading_;                     ///< last: it uses the intake
};

/// Runs `use` on the journal's thread, then `then` on this actor's. If the disk fails, all that `use` does is done
/// again later, so it must not stay half done; or, where there is `otherwise`, never, and that runs on this actor's
/// thread.
template <class Use>
void training_desk_state::ask_journal(Use use, std::function<void(decltype(use(std::declval<journal&>())))> then,
                                      std::function<void(const std::string& why)> otherwise) {
  use_journal order{[use = std::move(use), then = std::move(then), own = handle(self_)](journal& book) {
    std::optional<decltype(use(book))> answer;
    book.at_once([&] { answer.emplace(use(book)); });
    tell(own, carry_on{[then, answer = *std::move(answer)] { then(answer); }});
  }};
  if (otherwise)
    order.on_failure = [otherwise = std::move(otherwise), own = handle(self_)](const std::string& why) {
      tell(own, carry_on{[otherwise, why] { otherwise(why); }});
    };
  tell(parts_.jobs, std::move(order));
}

template <class Message>
void training_desk_state::tell_trainer(const training_queue::lease& lease, Message message) {
  message.lease = training_lease(lease.number);
  if (const auto found = trainers_.find(lease.trainer); found != trainers_.end())
    tell(found->second.actor, std::move(message));
}

}  // namespace troupe
