#pragma once
#include "actors/training/training_desk.hpp"

#include <set>

#include "base/sha256.hpp"
#include "cluster/journal/journal.hpp"
#include "tests/actors/support.hpp"
#include "tests/base/manual_clock.hpp"

namespace troupe::test {

inline const std::string good_data = "{\"prompt\":\"ab\",\"completion\":\"cd\"}\n{\"text\":\"efgh\"}\n";

/// The head's side of training, with a real journal. The test plays the jobs actor, the trainers and the adapter store.
class training_desk : public testing::Test {
 protected:
  training_desk() { start(); }
  ~training_desk() override { tell(actor_, stop_now{}); }

  void start(duration patience = std::chrono::minutes(10), model_id model = model_id(7),
             duration comeback = std::chrono::minutes(10)) {
    training_desk_parts parts;
    parts.patience = patience;
    parts.comeback = comeback;
    parts.intake.folder = folder_.path() / "training";
    parts.intake.uploads = folder_.path() / "files";
    parts.intake.prompts = letters_prompting(folder_, 64);
    parts.intake.base_name = "letters";
    parts.intake.time = time_;
    parts.intake.model = folder_.path() / "letters";
    parts.base = model;
    parts.adapter_memory = 100'000;
    parts.queue = {.most_deaths = 2, .leases_from = 0};
    parts.adapter_folder = folder_.path() / "adapters";
    parts.most_of_key = 2;
    parts.jobs = jobs_.handle();
    parts.store = store_.handle();
    parts.board = board_;
    parts.say = [](const std::string&) {};
    actor_ = spawn_training_desk(system_, std::move(parts));
  }
  void use_journal_once() { jobs_.take<use_journal>().use(journal_); }
  std::shared_ptr<inbox> send(const std::string& name, const json& arguments) {
    return send_command(actor_, name, arguments);
  }
  command_answer send_data(const std::string& text = good_data, const std::string& id = "job-1") {
    return send("train.data", {{"id", id}, {"file", "data"}, {"offset", 0}, {"text", text}})->take<command_answer>();
  }
  /// What train.create is asked for, with more fields or other ones.
  static json wanted(const json& more = json::object()) {
    json fields{{"id", "job-1"}, {"options", {{"adapter", "pricing"}, {"data", "d.jsonl"}}}};
    fields.update(more);
    return fields;
  }
  /// Sends data and makes a job of it. Returns what the client hears.
  command_answer submit(const std::string& text, const std::string& id = "job-1", const json& more = json::object()) {
    json asked = wanted({{"id", id}, {"data_sha256", sha256().add(text).finish()}});
    asked["options"].update(more);
    asked["tenant"] = asked["options"].value("owner", "");
    send_data(text, id);
    const auto answers = send("train.create", asked);
    serve_journal_until([&] { return answers->count<command_answer>() > 0; });
    return answers->take<command_answer>();
  }
  /// Lets the desk use the journal meanwhile.
  template <class Done>
  void serve_journal_until(Done done) {
    EXPECT_TRUE(is_soon([&] {
      if (done()) return true;
      if (jobs_.count<use_journal>() > 0) use_journal_once();
      return false;
    }));
  }
  std::vector<command_answer> answers_of(const std::vector<std::shared_ptr<inbox>>& asked) {
    serve_journal_until([&] {
      return std::all_of(asked.begin(), asked.end(),
                         [](const auto& each) { return each->template count<command_answer>() > 0; });
    });
    std::vector<command_answer> all;
    for (const auto& each : asked) all.push_back(each->take<command_answer>());
    return all;
  }
  void join(const std::string& name) { join(name, trainer_); }
  void join(const std::string& name, const mock<trainer_actor>& trainer) {
    tell(actor_, trainer_joined{name, trainer.handle(), name + ":1", {}});
    use_journal_once();  // which jobs are over?
  }
  train_job given() {
    const auto order = trainer_.take<train_job>();
    use_journal_once();  // it runs
    return order;
  }
  /// The job that a trainer was given, with a result that is on the head already.
  void end_training() {
    const train_job order = given();
    std::filesystem::create_directories(folder_.path() / "training/job-1/result");
    folder_.write("training/job-1/result/adapter_config.json", "{}");
    tell(actor_, training_ended{order.lease, {}, {{"adapter_config.json", 2, sha256().add("{}").finish()}}});
  }
  /// A new head, which finds in the journal what the last one has written down of the job.
  void start_anew(const fine_tune_mark& mark, duration comeback = std::chrono::minutes(10)) {
    tell(actor_, stop_now{});
    start(std::chrono::minutes(10), model_id(7), comeback);
    begin_training begun;
    begun.unfinished = {*journal_.find("job-1")};
    begun.marks["job-1"] = mark;
    tell(actor_, begun);
  }
  job_state state(const std::string& id = "job-1") const { return journal_.find(id)->state; }

  command_answer send_first_byte(const std::string& id) { return send_data("a", id); }

  temp_folder folder_;
  std::shared_ptr<manual_clock> time_ = std::make_shared<manual_clock>();
  int events_until_full_ = 0;  ///< so many events, or ends of jobs, from now on finds the journal a full disk; 0: none
  mutable journal journal_{{.file = folder_.path() / "journal.db", .wall_seconds = [this] {
                              if (events_until_full_ > 0 && --events_until_full_ == 0)
                                throw journal_failure("the disk is full");
                              return std::int64_t{1'700'000'000};
                            }}};
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<jobs_actor> jobs_{system_};
  mock<adapter_store_actor> store_{system_};
  mock<trainer_actor> trainer_{system_};
  training_desk_actor actor_;
};

}  // namespace troupe::test
