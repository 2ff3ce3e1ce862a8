// A whole cluster in one process and one thread: the head's actors and those of its nodes, real ones with a real model,
// over simulated links and by a simulated clock. A seed decides everything, so a failure can be had again.
#pragma once
#include <caf/scheduler/test_coordinator.hpp>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "actors/workers/node_agent.hpp"
#include "actors/workers/worker.hpp"
#include "model/arch/loaded_model.hpp"
#include "tests/actors/simulation/simulated_head.hpp"

namespace troupe::test {

/// What all simulations share, since it takes long to make.
struct simulated_model {
  temp_folder folder;
  std::shared_ptr<const loaded_model> model;
  std::shared_ptr<const prompting> prompts;
  std::map<adapter_version, std::shared_ptr<const lora_adapter>> adapters;

  explicit simulated_model(const char* name = "llama") {
    thread_pool pool(1);
    model = load_model(golden / name, {.quant = {}, .keep = {}, .cache = folder.path(), .progress = {}}, pool);
    prompts = letters_prompting(folder);
    for (const std::uint64_t version : {1, 2}) {
      adapter_file file = read_adapter(golden / name / "adapter", model->config);
      for (adapter_part& part : file.parts) part.scale *= version == 1 ? 1.f : -1.f;
      adapters[adapter_version(version)] = std::make_shared<lora_adapter>(file, model->config.layers);
    }
  }
};

/// Has every adapter, except while its disk is full.
struct simulated_fetcher {
  using handle = adapter_fetcher_actor;
  static constexpr const char* name = "fetcher";

  struct parts {
    const simulated_model* model;
    std::function<bool()> is_full;
  };
  simulated_fetcher(handle::pointer, parts chosen) : with(std::move(chosen)) {}
  handle::behavior_type make_behavior() {
    return {[this](const begin_fetching& begun) { worker = begun.worker; },
            [this](const load_adapter& order) {
              if (with.is_full()) return tell(worker, adapter_ready{order, nullptr, "the disk is full"});
              tell(worker, adapter_ready{order, with.model->adapters.at(order.version), {}});
            },
            [](const prepare_adapter&) {},
            [](const adapter_piece&) {},
            [](const stage_layers&) {},
            [](stage_ended) {},
            [](forget_life) {}};
  }

  parts with;
  worker_actor worker;
};

class simulated_cluster {
 public:
  struct options {
    std::uint64_t seed = 0;
    std::size_t nodes = 5;
    int stages = 2;
    std::int64_t blocks = 24;  ///< of each replica
    int lookup_tokens = 0;
    std::int32_t max_batch_tokens = 48;
    bool has_journal = false;  ///< so the head takes jobs
  };

  simulated_cluster(const simulated_model& model, const options& chosen)
      : random(chosen.seed), model_(model), options_(chosen), net_(random) {
    system_.await_actors_before_shutdown(false);  // nobody would run them
    publish(1);
    start_head();
    for (std::size_t i = 0; i < chosen.nodes; ++i) add_node();
  }
  ~simulated_cluster() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) end_node_process(i, false);
    if (head_) {
      tell(head_->supervisor, stop_now{});
      tell(head_->gateway, stop_now{});
      head_->kill();
    }
    while (run_one()) {
    }
    for (const auto& each : all_nodes_) each->wire.stop();
  }

  /// Which version the name "pricing" means from now on.
  void publish(std::uint64_t version) { publish_names({{"pricing", adapter_version(version)}}); }
  /// The name means nothing until the next publish(). Who uses a version keeps it.
  void unload() { publish_names({}); }
  void ask(begin_request request) { tell(head_->gateway, std::move(request)); }
  void cancel(request_id id) { tell(head_->gateway, end_request{id}); }
  /// A command about jobs, carried out at once. The head must be there.
  json command(const std::string& name, const json& arguments) {
    std::optional<command_answer> answer;
    tell(head_->jobs, command_call{{name, arguments.dump()}, [&](command_answer a) { answer = std::move(a); }});
    while (!answer && run_one()) {
    }
    EXPECT_TRUE(answer && answer->error.empty()) << name;
    return json::parse(answer.value().result);
  }

  void pass(duration time) {
    for (const instant end = now() + time; now() < end;) {
      while (run_one()) {
      }
      if (!head_ && now() >= head_starts_at_) start_head();
      for (std::size_t i = 0; i < nodes_.size(); ++i) look_after(i);
      time_scheduler().advance_time(std::chrono::milliseconds(1));
      net_.advance(now());
    }
  }
  instant now() { return {time_scheduler().clock().now().time_since_epoch()}; }

  // Faults. A process that ended is started again after a while.
  void kill_head() {
    if (!head_) return;
    note("head", "is killed");
    net_.remove(head_->wire, false);
    head_->kill();
    head_ = nullptr;
    head_starts_at_ = now() + std::chrono::milliseconds(200 + random() % 1500);
  }
  bool has_head() const { return head_ != nullptr; }
  std::size_t add_node() {
    nodes_.push_back(nullptr);
    start_node(nodes_.size() - 1);
    return nodes_.size();
  }
  void kill(std::size_t node) { end_node_process(node, false); }
  void kill_for_good(std::size_t node) {
    kill(node);
    starts_at_[node] = {duration::max()};
  }
  void leave(std::size_t node) {
    if (nodes_[node]) tell(nodes_[node]->agent, stop_now{});
  }
  void drain(std::size_t node) {
    if (head_)
      tell(head_->supervisor,
           command_call{{"drain", json{{"name", name_of(node)}}.dump()}, [](const command_answer&) {}});
  }
  void stop(std::size_t node, duration time) {
    if (!nodes_[node]) return;
    nodes_[node]->wire.is_stopped = true;
    nodes_[node]->wakes_at = now() + time;
  }
  /// The node can load no adapter for so long.
  void fill_disk(std::size_t node, duration time) { full_until_[node] = now() + time; }
  void cut_from_head(std::size_t node, duration time) {
    if (nodes_[node] && head_) net_.cut(nodes_[node]->wire, head_->wire, time);
  }
  void cut_between(std::size_t a, std::size_t b, duration time) {
    if (nodes_[a] && nodes_[b]) net_.cut(nodes_[a]->wire, nodes_[b]->wire, time);
  }
  /// The process of a last stage ends when it gets a step that has this token.
  std::optional<token_id> deadly;
  std::size_t deaths = 0;

  std::map<replica_id, replica_figures> replicas() const { return head_->board->replicas(); }
  std::string status() const {
    return head_->board->read("replicas") + head_->board->read("nodes") + head_->board->read("gateway");
  }
  std::vector<std::string> log;

  std::mt19937_64 random;

 private:
  struct node {
    node(simulated_net& net, const std::string& address) : wire(net, address) {}
    simulated_wire wire;
    std::shared_ptr<link_slot> head_link = std::make_shared<link_slot>();
    worker_actor worker;
    adapter_fetcher_actor fetcher;
    workers_head_actor head;
    node_agent_actor agent;
    std::optional<instant> wakes_at;
    bool is_last_stage = false, has_ended = false, was_killed = false;
  };

  static std::string name_of(std::size_t index) { return fmt::format("w{}", index); }
  caf::scheduler::test_coordinator& time_scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  /// One message of one actor, whichever. Returns false if nothing is left to do at this moment.
  bool run_one() {
    auto& jobs = time_scheduler().jobs;
    for (std::size_t tries = jobs.size(), at = jobs.empty() ? 0 : random() % jobs.size(); tries-- > 0;
         at = (at + 1) % jobs.size()) {
      const auto owner = owners_.find(dynamic_cast<caf::local_actor&>(*jobs[at]).id());
      if (owner != owners_.end() && owner->second->wire.is_stopped) continue;
      std::rotate(jobs.begin(), jobs.begin() + static_cast<std::ptrdiff_t>(at),
                  jobs.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      time_scheduler().run_once();
      return true;
    }
    return false;
  }

  // --- the head ---

  void publish_names(std::unordered_map<std::string, adapter_version> names) {
    adapter_directory::snapshot next;
    next.names = std::move(names);
    for (const auto& [version, adapter] : model_.adapters) {
      const std::string name = fmt::format("pricing@{}", version.value);
      next.versions[version] = {name, "", {}, static_cast<std::int64_t>(adapter->bytes())};
      next.names[name] = version;
    }
    adapters_->publish(std::move(next));
  }
  void start_head() {
    simulated_head_parts parts{supervisor_parts_of(), model_.prompts, adapters_, {}};
    if (options_.has_journal) parts.journal = folder_.path() / "journal.db";
    heads_.push_back(std::make_unique<simulated_head>(system_, net_, std::move(parts)));
    head_ = heads_.back().get();
  }
  supervisor_parts supervisor_parts_of() {
    const model_config& config = model_.model->config;
    supervisor_parts parts;
    parts.config = parse_cluster_config(
        "[cluster]\nname = \"test\"\nassemble_seconds = 1\n[model]\npath = \"model\"\n"
        "[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\"]\n[[node]]\nname = \"w0\"\nroles = "
        "[\"worker\"]\n",
        "simulated.toml");
    parts.config.model.lookup_tokens = options_.lookup_tokens;
    parts.members.build = "b";
    parts.members.detector = failure_detector::options::of(std::chrono::milliseconds(1500));
    parts.shape = {.layers = static_cast<int>(config.layers),
                   .layer_bytes = 1000,
                   .embedding_bytes = 10,
                   .head_bytes = 10,
                   .kv_bytes = 1};
    parts.wanted = {.replicas = 0,
                    .stages = options_.stages,
                    .tensor = 1,
                    .kv_memory = static_cast<std::uint64_t>(options_.blocks * 16 * config.layers),
                    .min_context = 128};
    parts.batches.context = 128;
    parts.batches.max_batch_tokens = options_.max_batch_tokens;
    parts.batches.max_sequences = 8;
    parts.batches.keeps_states = config.keeps_states();
    parts.batches.kept_beginnings = 4;
    parts.batches.worth_keeping = 16;
    parts.vocab_size = config.vocab_size;
    parts.reign = static_cast<std::uint32_t>(heads_.size() + 1);
    parts.say = [this](const std::string& line) { note("head", line); };
    return parts;
  }
  // --- nodes ---

  void start_node(std::size_t index) {
    const std::string address = fmt::format("tcp://{}:{}", name_of(index), ++last_port_);
    node& made = *all_nodes_.emplace_back(std::make_unique<node>(net_, address));
    nodes_[index] = &made;
    made.fetcher = spawn_state<simulated_fetcher>(
        system_, simulated_fetcher::parts{&model_, [this, index] { return now() < full_until_[index]; }});
    made.head = spawn_remote_head(system_, {.links = &made.wire, .link = made.head_link});
    worker_parts parts{.links = &made.wire,
                       .head = made.head,
                       .fetcher = made.fetcher,
                       .meter = std::make_shared<worker_meter>(),
                       .model = model_.model};
    parts.preload = [](const loaded_model&, std::int64_t, std::int64_t) {};
    made.worker = spawn_state<worker_state>(system_, parts);  // on a shared thread, unlike others
    tell(made.fetcher, begin_fetching{made.worker});
    made.agent = spawn_node_agent(system_, agent_of(made, index, parts.meter));
    listen_to_head(made, index);
    for (const caf::actor_id id : {made.worker->id(), made.fetcher->id(), made.head->id(), made.agent->id()})
      owners_[id] = &made;
    net_.listen(made.wire);
    tell(made.agent, begin_membership{address});
  }
  node_agent_parts agent_of(node& made, std::size_t index, std::shared_ptr<const worker_meter> meter) {
    node_agent_parts parts;
    parts.links = &made.wire;
    parts.head_link = made.head_link;
    parts.members = {member_actor(made.worker)};
    parts.meter = std::move(meter);
    parts.head = simulated_head::address;
    parts.hello.name = parts.hello.host = name_of(index);
    parts.hello.pid = static_cast<std::int64_t>(last_port_);
    parts.hello.roles = {"worker"};
    parts.hello.build = "b";
    parts.hello.threads = parts.hello.processors = 1;
    parts.hello.memory_bytes = 1 << 20;
    parts.hello.speed = 1;
    parts.new_incarnation = [this] { return incarnation_id(++last_incarnation_); };
    parts.on_end = [&made](int, const std::string&) { made.has_ended = true; };
    parts.say = parts.warn = [this, name = name_of(index)](const std::string& line) { note(name, line); };
    return parts;
  }
  void listen_to_head(node& made, std::size_t index) {
    deliver_from<join_answer>(made.wire, made.head_link, made.agent);
    deliver_from<heartbeat_answer>(made.wire, made.head_link, made.agent);
    deliver_from<end_node>(made.wire, made.head_link, made.agent);
    deliver_from<load_adapter>(made.wire, made.head_link, made.worker);
    deliver_from<drop_adapter>(made.wire, made.head_link, made.worker);
    made.wire.deliver<activations>(made.worker);
    made.wire.on<start_stage>([&made](incoming<start_stage> in) {
      if (in.link != made.head_link->get()) return;
      made.is_last_stage = in.message.next.empty();
      tell(made.worker, std::move(in.message));
    });
    made.wire.on<run_step>([this, &made, index](incoming<run_step> in) {
      if (in.link != made.head_link->get()) return;
      const auto& tokens = in.message.step.plan.tokens;
      if (deadly && made.is_last_stage && std::find(tokens.begin(), tokens.end(), *deadly) != tokens.end()) {
        made.was_killed = true;
        note(name_of(index), "dies of a step");
      } else {
        tell(made.worker, std::move(in.message));
      }
    });
    made.wire.on_lost([&made](link_id link, const link_end& end) {
      if (link != no_link) tell(made.agent, link_lost{link, end});
    });
  }

  /// What `troupe up` does: starts processes again. And a stopped one wakes up.
  void look_after(std::size_t index) {
    node* const process = nodes_[index];
    if (!process) {
      if (now() >= starts_at_[index]) start_node(index);
      return;
    }
    if (process->wakes_at && *process->wakes_at <= now()) {
      process->wakes_at.reset();
      process->wire.is_stopped = false;
    }
    if (process->has_ended || process->was_killed) {
      deaths += process->was_killed;
      end_node_process(index, process->has_ended);
    }
  }
  void end_node_process(std::size_t index, bool says_so) {
    node* const process = std::exchange(nodes_[index], nullptr);
    if (!process) return;
    note(name_of(index), says_so ? "ends" : "is killed");
    net_.remove(process->wire, says_so);
    process->wire.is_stopped = false;  // so that its actors end
    simulated_head::end(process->agent);
    simulated_head::end(process->worker);
    simulated_head::end(process->fetcher);
    simulated_head::end(process->head);
    process->agent = node_agent_actor();
    process->worker = worker_actor();
    process->fetcher = adapter_fetcher_actor();
    process->head = workers_head_actor();
    process->wire.stop();
    starts_at_[index] = now() + std::chrono::milliseconds(200 + random() % 3000);
  }
  void note(const std::string& who, const std::string& what) {
    log.push_back(fmt::format("{:9.3f} {}: {}", seconds_of(now().since_start), who, what));
  }

  struct config_of_simulation : caf::actor_system_config {
    config_of_simulation() { set("scheduler.policy", caf::atom("testing")); }
  };

  const simulated_model& model_;
  const options options_;
  config_of_simulation config_;
  caf::actor_system system_{config_};
  simulated_net net_;
  const temp_folder folder_;
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  std::vector<std::unique_ptr<simulated_head>> heads_;  ///< also those that have ended
  simulated_head* head_ = nullptr;                      ///< null: it has ended, and is started again
  instant head_starts_at_;
  std::vector<std::unique_ptr<node>> all_nodes_;  ///< also those that have ended
  std::vector<node*> nodes_;                      ///< null: it has ended, and is started again
  std::map<std::size_t, instant> starts_at_;
  std::map<std::size_t, instant> full_until_;
  std::map<caf::actor_id, node*> owners_;
  std::uint64_t last_port_ = 100, last_incarnation_ = 0;
};

}  // namespace troupe::test
