#include "tests/integration/cluster.hpp"

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/to_size.hpp"

namespace troupe::test {
namespace {

std::string node_text(const std::string& name, const std::string& roles) {
  return "[[node]]\nname = \"" + name + "\"\nroles = [" + roles + "]\nthreads = 1\n";
}

int next_number() {
  static std::atomic<int> last{0};
  return ++last;
}

}  // namespace

test_cluster::test_cluster(const test_site& site, const cluster_plan& plan)
    : site_(site), name_("c" + std::to_string(next_number())) {
  endpoint_ = plan.listen.empty() ? "tcp://127.0.0.1:" + std::to_string(free_port()) : plan.listen;
  if (plan.http) http_ = "127.0.0.1:" + std::to_string(free_port());
  std::ostringstream text;
  text << "[cluster]\nname = \"" << name_ << "\"\nlisten = \"" << endpoint_ << "\"\nhttp = \"" << http_
       << "\"\nstate_dir = \"" << state().string() << "\"\nreplicas = " << plan.replicas << "\nstages = " << plan.stages
       << "\ntensor = " << plan.tensor << "\n"
       << plan.in_cluster << "\n[model]\npath = \"" << site.model().string() << "\"\nquant = \"u8\"\n"
       << plan.in_model << "\n[scheduler]\nkv_memory = \"64MiB\"\n"
       << plan.in_scheduler << "\n[training]\n"
       << plan.in_training << "\n"
       << node_text("head", plan.head_works ? R"("router", "scheduler", "worker")" : R"("router", "scheduler")");
  for (const std::string& worker : plan.workers) text << node_text(worker, R"("worker")");
  for (const std::string& trainer : plan.trainers) text << node_text(trainer, R"("trainer")");
  file_ = site.write(name_ + ".toml", text.str());
}

test_cluster::~test_cluster() {
  if (up_) down();
}

void test_cluster::up() {
  up_ = start({"up", file_.string()});
  wait_until([this] { return up_->poll() || running_replicas() > 0; });
  wait_for_service(std::chrono::seconds(0));
}

void test_cluster::wait_for_service(std::chrono::seconds longest) const {
  if (!wait_until([this] { return running_replicas() > 0; }, longest))
    throw std::runtime_error("the cluster does not serve: " + (up_ ? up_->out() + up_->error() : ""));
}

bool test_cluster::up_has_seen_it_serve() const {
  return wait_until([this] { return said().find("serves at") != std::string::npos; });
}

int test_cluster::down() {
  up_->signal(SIGTERM);
  const int code = up_->wait();
  up_.reset();
  return code;
}

process test_cluster::start(const words& arguments) const {
  words command{TROUPE_BINARY};
  command.insert(command.end(), arguments.begin(), arguments.end());
  words environment = site_.environment();
  environment.push_back("TROUPE_CONNECT=" + endpoint_);
  return {command, site_.path("out" + std::to_string(next_number())), environment};
}

std::string test_cluster::run(words arguments) const {
  process done = start(arguments);
  if (const int code = done.wait(); code != 0) throw std::runtime_error(std::to_string(code) + ": " + done.error());
  return done.out();
}

void test_cluster::load_adapters() const {
  for (const char* name : {"red", "blue"}) run({"adapters", "load", name, "--path", site_.adapter(name).string()});
}

std::pair<int, std::string> test_cluster::ask_http(const std::string& method, const std::string& path,
                                                   const std::string& body, http_headers headers) const {
  std::pair<int, std::string> got;
  http_client client(parse_http_url(url()));
  client.send(method, path, std::move(headers), body,
              {.on_head = [&](int status, const http_headers&) { got.first = status; },
               .on_data = [&](std::string_view piece) { got.second += piece; },
               .on_end = [](const std::string& error) { EXPECT_EQ(error, ""); }});
  client.run();
  return got;
}

json test_cluster::answer_to(const std::string& command, const json& arguments) const {
  std::optional<curve_keys> keys;
  if (const char* file = std::getenv("TROUPE_KEY")) keys = read_client_key(file);
  const auto answer =
      ask<command_answer>(endpoint_, keys, client_command{command, arguments.dump()}, std::chrono::seconds(3));
  return answer && !answer->is_refused() ? json::parse(answer->result) : json();
}

json test_cluster::node(const std::string& name) const {
  const json now = status();
  if (!now.is_null())
    for (const json& each : now.at("nodes"))
      if (each.at("name") == name) return each;
  return {};
}

std::string test_cluster::state_of(const std::string& name) const {
  const json entry = node(name);
  return entry.is_null() ? "" : entry.at("state").get<std::string>();
}

pid_t test_cluster::pid_of(const std::string& name) const {
  const json entry = node(name);
  return entry.is_null() ? 0 : entry.at("pid").get<pid_t>();
}

void test_cluster::kill(const std::string& name, int signal) const {
  pid_t pid = 0;
  ASSERT_TRUE(wait_until([&] { return (pid = pid_of(name)) > 1; })) << name;
  ::kill(pid, signal);
}

int test_cluster::running_replicas() const {
  const json now = status();
  int running = 0;
  if (!now.is_null())
    for (const json& each : now.at("replicas")) running += each.at("state") == "running";
  return running;
}

bool test_cluster::is_at_rest() const {
  const json now = status();
  if (now.is_null()) return false;
  for (const json& each : now.at("replicas"))
    if (each.at("state") != "running" || each.at("running") != 0 || each.at("waiting") != 0 ||
        each.at("blocks") != each.at("free_blocks"))
      return false;
  return true;
}

std::string test_cluster::log(const std::string& node) const {
  return read_file(state() / "logs" / (node + ".log"));
}

// --- load ---

load::load(const test_site& site, const std::string& endpoint, int requests, std::int64_t tokens)
    : site_(site), streams_(endpoint) {
  for (int i = 0; i < requests; ++i) {
    requests_.push_back(site.request(i, tokens));
    requests_.back().id = streams_.begin(requests_.back());
  }
}

int load::wrong_answers(std::chrono::seconds longest) {
  int wrong = streams_.finish(longest) ? 0 : 1;
  if (wrong) ADD_FAILURE() << "answers did not end in time";
  for (const std::string& fault : streams_.faults()) ++wrong, ADD_FAILURE() << fault;
  for (int i = 0; i < static_cast<int>(requests_.size()); ++i)
    for (std::int32_t index = 0; index < requests_[to_size(i)].answers; ++index) {
      const auto& request = requests_[to_size(i)];
      const auto& expected = expected_answer(site_, i, request.sampling.max_tokens, index);
      const auto got = streams_.answer(request.id, index);
      if (got == expected) continue;
      ++wrong;
      const auto differ = std::mismatch(got.begin(), got.end(), expected.begin(), expected.end());
      ADD_FAILURE() << "request " << i << ", answer " << index << ": " << got.size() << " tokens instead of "
                    << expected.size() << ", other ones from " << differ.first - got.begin() << " on";
    }
  return wrong;
}

const std::vector<token_id>& expected_answer(const test_site& site, int i, std::int64_t tokens, std::int32_t index) {
  static std::map<std::tuple<int, std::int64_t, std::int32_t>, std::vector<token_id>> known;
  auto [at, is_new] = known.try_emplace({i, tokens, index});
  if (is_new) at->second = site.expected(site.request(i, tokens), index);
  return at->second;
}

}  // namespace troupe::test
