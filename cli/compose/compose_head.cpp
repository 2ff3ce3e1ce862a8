#include "cli/compose/compose_head.hpp"

#include "actors/http/batch_lines.hpp"
#include "actors/http/file_store.hpp"
#include "actors/local_head.hpp"
#include "actors/replicas/router.hpp"
#include "base/error.hpp"
#include "cli/compose/link_news.hpp"
#include "cluster/config/config_address.hpp"
#include "model/formats/sampling_advice.hpp"

namespace troupe {
namespace {

router_state::options router_options_of(const cluster_config& config) {
  router_state::options options;
  options.policy.max_waiting = static_cast<std::uint32_t>(config.scheduler.max_waiting);
  options.most_parked = static_cast<std::size_t>(config.scheduler.max_waiting);
  return options;
}

std::shared_ptr<journal> open_journal(const cluster_config& config) {
  std::error_code fault;
  std::filesystem::create_directories(config.state_dir, fault);
  if (fault) refuse("{}: cannot be made: {}", config.state_dir.string(), fault.message());
  const auto files = std::make_shared<file_store>(config.state_dir / "files");
  return std::make_shared<journal>(
      journal::options{.file = config.state_dir / "journal.db",
                       .on_removed = [files](const std::string& id) { files->forget_about(id); }});
}

}  // namespace

head_node::head_node(caf::actor_system& system, wire& links, const node_site& site)
    : router_(spawn_router(system, router_options_of(site.config))) {
  try {
    start(system, links, site);
  } catch (...) {
    stop();  // actors with a thread of their own would wait for ever
    throw;
  }
}

void head_node::start(caf::actor_system& system, wire& links, const node_site& site) {
  const auto book = open_journal(site.config);
  const std::uint32_t reign = book->begin_reign();
  const auto supervisor = std::make_shared<supervisor_actor>();
  std::optional<local_worker> local;
  if (site.node.is_worker()) {
    worker_ = start_worker(system, site, links, spawn_local_head(system, supervisor, store_, directory_));
    local = local_worker{worker_->worker, hello_of(site, site.config.head_endpoint()), worker_->alarm};
    local->hello.incarnation = random_incarnation();
  }
  supervisor_ = spawn_supervisor(system, supervisor_options_of(site, reign), links, router_, directory_, adapters_,
                                 board_, training_, local);
  *supervisor = supervisor_;
  front_parts parts;
  parts.config = &site.config;
  parts.prompts = std::make_shared<const prompting>(site.config.model.path, site.model->config, site.context);
  const auto& path = site.config.model.path;
  const served_model served{path.filename().string(), read_sampling_advice(path), parts.prompts, adapters_};
  parts.read_for_endpoint = batch_line_reader(served);
  parts.book = book;
  parts.board = board_;
  parts.adapters = adapters_;
  parts.model = site.fingerprint;
  parts.router = router_;
  parts.supervisor = supervisor_;
  parts.directory = directory_;
  parts.reign = reign;
  parts.say = say;
  front_ = start_front(system, links, parts);
  *store_ = front_.store;
  *training_ = front_.training;
  listen_to_members(links);
  const auto news = said_once(say);
  links.on_lost([supervisor = supervisor_, desk = front_.desk, news](link_id link, const std::string& why) {
    if (link == no_link) return news(why);  // somebody was refused; links of clients come and go
    tell(supervisor, link_lost{{}, link});
    tell(desk, link_lost{{}, link});
  });
  serve_http(site.config, served);
  links.start();
}

void check_http(const cluster_config& config) {
  if (const auto place = split_host_port(config.http))
    check_http_address({.host = place->host, .port = static_cast<std::uint16_t>(place->port)});
}

void head_node::serve_http(const cluster_config& config, const served_model& served) {
  const auto place = split_host_port(config.http);
  if (!place) return;
  http_options options;
  options.host = place->host;
  options.port = static_cast<std::uint16_t>(place->port);
  options.threads = 2;
  http_parts parts{served,         front_.gateway, front_.store,     front_.jobs, front_.training,
                   front_.numbers, board_,         config.state_dir, say,         config.log_prompts};
  http_ = std::make_unique<http_front>(std::move(options), std::move(parts));
  say(fmt::format("http://{}:{}: listening", place->host, http_->port()));
}

/// What workers and trainers say is heard from members alone.
void head_node::listen_to_members(wire& links) {
  const auto to_supervisor = [&]<message M>() {
    links.on<M>([to = supervisor_](incoming<M> in) { tell(to, std::move(in)); });
  };
  links.on<join_cluster>([&links, to = supervisor_](incoming<join_cluster> in) {
    if (!links.is_client(in.link)) return tell(to, std::move(in));
    links.send(in.link, join_answer{in.what.hello.incarnation, false, false,
                                    "this key is a client's: a node needs cluster.key"});
  });
  to_supervisor.template operator()<heartbeat>();
  to_supervisor.template operator()<leave_cluster>();
  const auto from_member = [&]<message M>(auto deliver) {
    links.on<M>([deliver, directory = directory_](incoming<M> in) {
      if (directory->is_member(in.link)) deliver(std::move(in.what));
    });
  };
  from_member.template operator()<stage_started>([to = supervisor_](stage_started what) { tell(to, std::move(what)); });
  from_member.template operator()<stage_failed>([to = supervisor_](stage_failed what) { tell(to, std::move(what)); });
  const auto to_scheduler = [directory = directory_](auto what) {
    tell(directory->find(what.life.replica), std::move(what));
  };
  from_member.template operator()<step_done>(to_scheduler);
  from_member.template operator()<adapter_loaded>(to_scheduler);
  from_member.template operator()<adapter_prepared>([to = front_.store](adapter_prepared what) { tell(to, what); });
  const auto to_training = [to = front_.training](auto what) { tell(to, std::move(what)); };
  from_member.template operator()<training_progress>(to_training);
  from_member.template operator()<training_ended>(to_training);
  from_member.template operator()<want_training_piece>(to_training);
  from_member.template operator()<training_piece>(to_training);
  if (worker_)
    links.on<activations>([&links, to = worker_->worker](incoming<activations> in) {
      if (!links.is_client(in.link)) tell(to, std::move(in.what));
    });
}

void head_node::stop() {
  stop_front(front_);
  if (http_) http_->stop();
  tell(supervisor_, stop_now{});
  if (worker_) tell(worker_->worker, stop_now{});
  if (worker_) tell(worker_->fetcher, stop_now{});
  // A worker with a thread of its own ends with the last handle on it, and schedulers hold some.
  for (const scheduler_actor& scheduler : directory_->all()) tell(scheduler, replica_stopped{});
  directory_->clear();
}

}  // namespace troupe
