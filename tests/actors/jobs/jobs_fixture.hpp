#pragma once
#include "actors/jobs/jobs.hpp"

#include <sqlite3.h>

#include <atomic>
#include <set>

#include "tests/actors/support.hpp"
#include "tests/base/full_disk.hpp"

namespace troupe::test {

/// While this object lives, journals that were opened since `watch` can be written but not read.
class broken_reads {
 public:
  static void watch() { ::sqlite3_auto_extension(reinterpret_cast<void (*)()>(&attach)); }
  broken_reads() { are_on = true; }
  ~broken_reads() { are_on = false; }
  broken_reads(const broken_reads&) = delete;
  broken_reads& operator=(const broken_reads&) = delete;

 private:
  static int attach(sqlite3* to, char**, const void*) {
    ::sqlite3_progress_handler(to, 1, &fails, to);
    return SQLITE_OK;
  }
  static int fails(void* of) {
    return are_on && ::sqlite3_txn_state(static_cast<sqlite3*>(of), "main") == SQLITE_TXN_READ;
  }
  static inline std::atomic<bool> are_on = false;
};

/// One life of a head: jobs with a journal on the same file, and a gateway that the test plays.
class head {
 public:
  head(
      const temp_folder& folder, const std::shared_ptr<const prompting>& prompts,
      const std::function<void(jobs_parts&)>& change = [](jobs_parts&) {},
      const std::function<std::int64_t()>& wall_seconds = {})
      : gateway_(system_) {
    jobs_parts parts;
    parts.book = std::make_shared<journal>(journal::options{
        .file = folder.path() / "journal.db", .wall_seconds = wall_seconds, .passed_seconds = wall_seconds});
    parts.prompts = prompts;
    parts.numbers = std::make_shared<request_numbers>();
    parts.board = board;
    parts.queue.shortest_retry = std::chrono::milliseconds(1);
    change(parts);
    jobs_ = spawn_jobs(system_, std::move(parts));
    begin();
  }
  ~head() { stop(); }

  void begin() { tell(jobs_, begin_jobs{gateway_.handle(), training_.handle()}); }
  /// Dies like a process: what is not in the journal is lost, except for what stop_now still writes.
  void stop() {
    if (!jobs_) return;
    tell(jobs_, stop_now{});
    jobs_ = nullptr;
  }

  void send(const std::string& name, const json& arguments, std::function<void(command_answer)> then) {
    tell(jobs_, command_call{{name, arguments.dump()}, std::move(then)});
  }
  command_answer run(const std::string& name, const json& arguments) {
    return send_command(jobs_, name, arguments)->take<command_answer>();
  }
  json get(const std::string& name, const json& arguments) {
    const auto answer = run(name, arguments);
    EXPECT_EQ(answer.error, "");
    return json::parse(answer.result, nullptr, false);
  }
  void submit(const std::string& id, const std::vector<std::string>& lines, const json& options = json::object(),
              const std::string& tenant = {}) {
    get("job.create", {{"id", id}, {"lines", lines.size()}, {"options", options}, {"tenant", tenant}});
    get("job.lines", {{"id", id}, {"first", 0}, {"lines", lines}});
    EXPECT_NE(get("job.seal", {{"id", id}})["state"], "receiving");
  }
  void use(std::function<void(journal&)> what, std::function<void(const std::string& why)> on_failure = {}) {
    tell(jobs_, use_journal{std::move(what), std::move(on_failure)});
  }
  catalogue_saved save(save_catalogue order) {
    order.asker = store_.handle();
    tell(jobs_, std::move(order));
    return store_.take<catalogue_saved>();
  }
  begin_request next() { return gateway_.take<begin_request>(); }
  std::size_t waiting() { return gateway_.count<begin_request>(); }
  end_request next_end() { return gateway_.take<end_request>(); }
  std::size_t ended() { return gateway_.count<end_request>(); }
  mock<training_desk_actor>& training() { return training_; }
  /// Answers with the prompt itself.
  static void answer(const begin_request& request) {
    answer_part part;
    for (const token_id token : request.engine.sequence.prompt) {
      part.text += static_cast<char>(' ' + token);
      part.tokens.push_back(token);
    }
    part.end = answer_end{"length", 1, request.adapter};
    request.listener->on_part(std::move(part));
  }
  /// Waits until the job is over.
  json wait(const std::string& id) {
    return await(id, [](const json& job) { return job["state"] != "queued" && job["state"] != "running"; });
  }
  /// Waits until so many of its lines have been answered.
  void wait_for_answers(const std::string& id, std::size_t count) {
    await(id, [count](const json& job) { return job["ok"] == count; });
  }
  std::vector<json> outputs(const std::string& id) { return outputs_in(get("job.outputs", {{"id", id}, {"from", 0}})); }

  std::shared_ptr<status_board> board = std::make_shared<status_board>();

 private:
  template <class Condition>
  json await(const std::string& id, const Condition& holds) {
    json job;
    EXPECT_TRUE(is_soon([&] { return holds(job = get("job.get", {{"id", id}})); })) << job;
    return job;
  }

  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<gateway_actor> gateway_;
  mock<adapter_store_actor> store_{system_};
  mock<training_desk_actor> training_{system_};
  jobs_actor jobs_;
};

class jobs : public testing::Test {
 protected:
  temp_folder folder_;
  std::shared_ptr<const prompting> prompts_ = letters_prompting(folder_);

  static std::vector<std::string> lines(int count) {
    std::vector<std::string> made;
    for (int i = 0; i < count; ++i) made.push_back(json{{"prompt", "n" + std::to_string(i)}, {"custom_id", i}}.dump());
    return made;
  }
};

}  // namespace troupe::test
