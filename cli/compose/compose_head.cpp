#include "cli/compose/compose_head.hpp"

#include <fmt/format.h>

#include "actors/front_settings.hpp"
#include "actors/http/jobs/batch_lines.hpp"
#include "actors/http/jobs/job_records.hpp"
#include "actors/replicas/router.hpp"
#include "actors/workers/node_agent.hpp"
#include "base/host_port.hpp"
#include "base/to_size.hpp"
#include "cli/compose/compose_site_settings.hpp"
#include "cli/compose/link_news.hpp"
#include "cli/compose/node_log.hpp"
#include "model/formats/sampling_advice.hpp"

namespace troupe {
namespace {

std::shared_ptr<journal> open_journal(const cluster_config& config, const std::shared_ptr<job_records>& records) {
  make_state_folder(config.state_dir);
  journal::options options = journal_options_of(config);
  options.on_removed = [records](const std::string& id) { records->forget(id); };
  return std::make_shared<journal>(std::move(options));
}

served_model served_model_of(const node_site& site, const std::shared_ptr<const adapter_directory>& adapters) {
  const std::filesystem::path& path = site.config.model.path;
  auto prompts = std::make_shared<const prompting>(path, site.model->config, site.context);
  return {.model = site.config.model.name,
          .advice = read_sampling_advice(path),
          .prompts = std::move(prompts),
          .adapters = adapters};
}

}  // namespace

void check_http_is_free(const cluster_config& config) {
  if (const auto place = split_host_port(config.http))
    check_http_address({.host = place->host, .port = static_cast<std::uint16_t>(place->port)});
}

head_node::head_node(caf::actor_system& system, wire& links, const node_site& site)
    : system_(system),
      links_(links),
      site_(site),
      records_(std::make_shared<job_records>(site.config.state_dir / "files")),
      router_(spawn_router(system, {.most_parked = to_size(site.config.scheduler.max_waiting)})) {
  try {
    start();
  } catch (...) {
    stop();  // actors with a thread of their own would wait for ever
    throw;
  }
}

void head_node::start() {
  const auto book = open_journal(site_.config, records_);
  const std::uint32_t reign = book->begin_reign();
  records_->forget_unknown([&](const std::string& job) { return book->find(job).has_value(); });
  const served_model served = served_model_of(site_, adapters_);
  start_own_supervisor(reign);
  start_own_front(book, reign, served);
  const heard_by heard{.supervisor = supervisor_, .store = front_.store, .directory = directory_};
  tell(supervisor_, begin_cluster{front_.training, start_own_worker(heard)});
  listen_to_nodes();
  hear_workers(links_, heard);
  hear_trainers();
  listen_to_losses();
  serve_http(served);
  links_.start();
}

void head_node::start_own_supervisor(std::uint32_t reign) {
  supervisor_parts parts = supervisor_parts_of(site_, reign);
  parts.links = &links_;
  parts.router = router_;
  parts.directory = directory_;
  parts.adapters = adapters_;
  parts.board = board_;
  supervisor_ = spawn_supervisor(system_, std::move(parts));
}

void head_node::start_own_front(const std::shared_ptr<journal>& book, std::uint32_t reign, const served_model& served) {
  front_ = start_front(system_, {.links = &links_,
                                 .config = &site_.config,
                                 .prompts = served.prompts,
                                 .book = book,
                                 .board = board_,
                                 .adapters = adapters_,
                                 .base = site_.fingerprint,
                                 .quantization = site_.model->quantization,
                                 .router = router_,
                                 .supervisor = supervisor_,
                                 .directory = directory_,
                                 .reign = reign,
                                 .read_for_endpoint = batch_line_reader(served),
                                 .say = say});
}

std::optional<local_worker> head_node::start_own_worker(const heard_by& heard) {
  if (!site_.node.is_worker()) return {};
  worker_ = start_worker(system_, site_, links_, spawn_local_head(system_, heard));
  local_worker own{worker_->worker, hello_of(site_, site_.config.head_endpoint()), worker_->alarm, worker_->meter};
  own.hello.incarnation = random_incarnation();
  return own;
}

void head_node::listen_to_nodes() {
  links_.on<join_cluster>([&links = links_, to = supervisor_](incoming<join_cluster> in) {
    if (!links.is_client(in.link)) return tell(to, std::move(in));
    links.send(in.link, join_answer{in.message.hello.incarnation, false, false,
                                    "this key is a client's: a node needs cluster.key"});
  });
  links_.deliver_with_link<heartbeat>(supervisor_);
  links_.deliver_with_link<leave_cluster>(supervisor_);
  if (worker_)
    links_.on<activations>([&links = links_, to = worker_->worker](incoming<activations> in) {
      if (!links.is_client(in.link)) tell(to, std::move(in.message));
    });
}

void head_node::hear_trainers() {
  const auto to_training = [to = front_.training](auto said) { tell(to, std::move(said)); };
  on_member<training_progress>(links_, directory_, to_training);
  on_member<training_ended>(links_, directory_, to_training);
  on_member<want_training_piece>(links_, directory_, to_training);
  on_member<training_piece>(links_, directory_, to_training);
}

void head_node::listen_to_losses() {
  const auto news = said_once(say);
  const auto worker = worker_ ? worker_->worker : worker_actor();
  links_.on_lost([supervisor = supervisor_, desk = front_.desk, worker, news](link_id link, const link_end& end) {
    if (link == no_link) return news(end.why);  // somebody was refused; links of clients come and go
    tell(supervisor, link_lost{link});
    tell(desk, link_lost{link});
    tell(worker, link_lost{link, end});  // it may be the one to its next stage
  });
}

void head_node::serve_http(const served_model& served) {
  const cluster_config& config = site_.config;
  const auto place = split_host_port(config.http);
  if (!place) return;
  const http_options options{.host = place->host, .port = static_cast<std::uint16_t>(place->port), .threads = 2};
  http_ = std::make_unique<http_front>(options, http_parts{.served = served,
                                                           .gateway = front_.gateway,
                                                           .store = front_.store,
                                                           .jobs = front_.jobs,
                                                           .training = front_.training,
                                                           .numbers = front_.numbers,
                                                           .board = board_,
                                                           .records = records_,
                                                           .state_dir = config.state_dir,
                                                           .log = say,
                                                           .log_bodies = config.log_prompts,
                                                           .origins = config.http_origins,
                                                           .need_keys = config.need_keys,
                                                           .file_bytes_per_key = config.key_files});
  say(fmt::format("http://{}: listening", text_of(host_port{place->host, http_->port()})));
  if (http_->is_open_to_others())
    warn("whoever reaches this address may use it: make a key (troupe keys add), or set cluster.need_keys");
}

void head_node::stop() {
  stop_front(front_);
  if (http_) http_->stop();
  tell(supervisor_, stop_now{});
  if (worker_) tell(worker_->worker, stop_now{});
  directory_->clear();
  (void)await_ends(farewell_time, front_.gateway, front_.desk, supervisor_);
}

}  // namespace troupe
