#include "cli/compose/compose_worker.hpp"

#include "actors/adapters/adapter_fetcher.hpp"
#include "actors/workers/worker.hpp"
#include "cli/compose/compose_site_settings.hpp"
#include "cli/compose/node_log.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {
namespace {

rank_settings rank_settings_of(const node_site& site) {
  rank_settings settings;
  settings.place = site.meeting;
  settings.patience = patience_with_ranks(site.config);
  settings.by_nccl = site.config.collective == "nccl";
  return settings;
}

/// If the tokenizer cannot be opened here, only answers that need it end.
token_tree_source tokens_of_model(const node_site& site) {
  return token_tree_from([path = site.config.model.path] { return load_tokenizer(path); },
                         site.model->config.vocab_size);
}

}  // namespace

worker_handles start_worker(caf::actor_system& system, const node_site& site, wire& links,
                            const workers_head_actor& head) {
  worker_handles made;
  made.fetcher = spawn_adapter_fetcher(system, {.head = head,
                                                .model = site.model,
                                                .store = site.config.state_dir / "adapters",
                                                .can_fetch = !site.node.is_head(),
                                                .node = site.node.name,
                                                .say = say});
  made.worker = spawn_worker(system, {.links = &links,
                                      .head = head,
                                      .fetcher = made.fetcher,
                                      .meter = made.meter,
                                      .model = site.model,
                                      .threads = site.threads,
                                      .device = site.node.device,
                                      .ranks = rank_settings_of(site),
                                      .alarm = made.alarm,
                                      .tokens = tokens_of_model(site),
                                      .on_device_lost = end_without_device(site),
                                      .node = site.node.name,
                                      .say = say,
                                      .largest_steps = step_sizes_of(site)});
  tell(made.fetcher, begin_fetching{made.worker});
  return made;
}

}  // namespace troupe
