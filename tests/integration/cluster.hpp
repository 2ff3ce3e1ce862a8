// A cluster of real processes on this machine.
#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/integration/process.hpp"
#include "tests/integration/site.hpp"
#include "tests/integration/streams.hpp"

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
  std::string in_training = "idle_priority = false";  ///< whatever else runs there
  std::string listen = {};                            ///< of the head; empty: a free port of this machine
  bool http = false;                                  ///< also at a free port
};

class test_cluster {
 public:
  test_cluster(const test_site& site, const cluster_plan& plan);
  ~test_cluster();

  const std::string& endpoint() const { return endpoint_; }
  std::string url() const { return "http://" + http_; }  ///< with `http` in the plan
  const std::filesystem::path& file() const { return file_; }
  std::filesystem::path state() const { return site_.path(name_ + "-state"); }
  const test_site& site() const { return site_; }

  /// Starts `troupe up`, or waits for it to serve. Throws where it does not.
  void up();
  void wait_for_service(std::chrono::seconds longest = std::chrono::seconds(30)) const;
  /// SIGTERM to `up`; its exit code.
  int down();
  /// `troupe` with these words. The result's process is independent of `up`.
  process start(const words& arguments) const;
  process start_node(const std::string& name) const { return start({"node", file_.string(), "--name", name}); }
  /// `troupe` with these words, and --connect; its output where it ended with 0, else throws.
  std::string run(words arguments) const;
  void load_adapters() const;

  /// Null where the head does not answer.
  json status() const;
  /// The entry of a node; null where there is none.
  json node(const std::string& name) const;
  pid_t pid_of(const std::string& name) const;
  int running_replicas() const;
  /// Nothing runs, nothing waits, all blocks are free.
  bool is_at_rest() const;
  std::string log(const std::string& node) const;

 private:
  const test_site& site_;
  std::string name_, endpoint_, http_;
  std::filesystem::path file_;
  std::optional<process> up_;
};

/// Not among those that the system hands out by itself, so that it is still free when a head comes again.
int free_port();

/// 32 requests of every kind, begun; and whether each got exactly what one process gives it.
class load {
 public:
  load(const test_site& site, const std::string& endpoint, int requests = 32, std::int64_t tokens = 400);

  streams& traffic() { return streams_; }
  /// How many answers are not what they should be; says which.
  int wrong_answers(std::chrono::seconds longest = std::chrono::seconds(90));

 private:
  const test_site& site_;
  streams streams_;
  std::vector<client_request> requests_;
};

/// The same as load expects, computed once for a size.
const std::vector<token_id>& expected_answer(const test_site& site, int i, std::int64_t tokens, std::int32_t index);

}  // namespace troupe::test
