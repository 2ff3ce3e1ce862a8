// A cluster of real processes on this machine.
#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <nlohmann/json.hpp>

#include "tests/base/free_port.hpp"
#include "tests/integration/process.hpp"
#include "tests/integration/site.hpp"
#include "tests/integration/streams.hpp"
#include "transport/http/http_client.hpp"

namespace troupe::test {

using json = nlohmann::ordered_json;

struct cluster_plan {
  int replicas = 1, stages = 1, tensor = 1;
  words workers = {"w0"};
  words trainers = {};
  bool head_works = false;
  std::string in_cluster = {};  ///< more lines for [cluster]
  std::string in_model = {};
  std::string in_scheduler = "max_batch_tokens = 256";
  std::string in_training = "idle_priority = false";  ///< trains even while other programs use the processors
  std::string listen = {};                            ///< of the head; empty: a free port of this machine
  bool http = false;                                  ///< also at a free port
};

class test_cluster {
 public:
  test_cluster(const test_site& site, const cluster_plan& plan);
  ~test_cluster();

  const std::string& endpoint() const { return endpoint_; }
  std::string url() const { return "http://" + http_; }  ///< with `http` in the plan
  /// Status and body of the answer, over HTTP.
  std::pair<int, std::string> ask_http(const std::string& method, const std::string& path, const std::string& body = {},
                                       http_headers headers = {}) const;
  const std::filesystem::path& file() const { return file_; }
  std::filesystem::path state() const { return site_.path(name_ + "-state"); }
  const test_site& site() const { return site_; }

  /// up() starts `troupe up`; wait_for_service() waits until it serves. Both throw if that fails.
  void up();
  /// By `troupe up` so far, on standard output.
  std::string said() const { return up_->out(); }
  void wait_for_service(std::chrono::seconds longest = std::chrono::seconds(30)) const;
  /// Before that, `up` takes a worker's death for one that cannot start: without respawn it ends the cluster.
  bool up_has_seen_it_serve() const;
  /// Sends SIGTERM to `up`; returns its exit code.
  int down();
  /// Runs `troupe` with these words. The process does not depend on `up`.
  process start(const words& arguments) const;
  process start_node(const std::string& name) const { return start({"node", file_.string(), "--name", name}); }
  /// Runs `troupe` with these words and --connect. Returns its output; throws if it does not end with 0.
  std::string run(words arguments) const;
  void load_adapters() const;

  /// The head's answer to a command, asked from here: so often that a process each time would cost more than the rest
  /// of most tests. Null if the head does not answer or refuses.
  json answer_to(const std::string& command, const json& arguments = json::object()) const;
  json status() const { return answer_to("status"); }
  /// The status entry of a node; null if there is none.
  json node(const std::string& name) const;
  /// Empty where there is none, or the head does not answer.
  std::string state_of(const std::string& name) const;
  pid_t pid_of(const std::string& name) const;
  /// As soon as the head knows the node: one that was just killed cannot be asked before the next one is there.
  void kill(const std::string& name, int signal = SIGKILL) const;
  int running_replicas() const;
  /// Whether nothing runs, nothing waits and all blocks are free.
  bool is_at_rest() const;
  std::string log(const std::string& node) const;

 private:
  const test_site& site_;
  std::string name_, endpoint_, http_;
  std::filesystem::path file_;
  std::optional<process> up_;
};

/// Begins 32 requests of every kind, and checks that each gets exactly what a single process answers.
class load {
 public:
  load(const test_site& site, const std::string& endpoint, int requests = 32, std::int64_t tokens = 400);

  streams& traffic() { return streams_; }
  /// How many answers are wrong; prints which.
  int wrong_answers(std::chrono::seconds longest = std::chrono::seconds(90));

 private:
  const test_site& site_;
  streams streams_;
  std::vector<client_request> requests_;
};

/// The answer that `load` expects; computed once for each size.
const std::vector<token_id>& expected_answer(const test_site& site, int i, std::int64_t tokens, std::int32_t index);

}  // namespace troupe::test
