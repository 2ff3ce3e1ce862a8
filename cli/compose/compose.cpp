#include "cli/compose/compose.hpp"

#include <poll.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>

#include <fmt/format.h>

#include "base/large_blocks.hpp"
#include "base/thread_pool.hpp"
#include "base/wake_signal.hpp"
#include "cli/compose/compose_head.hpp"
#include "cli/compose/compose_site_settings.hpp"
#include "cli/compose/member_node.hpp"
#include "cli/compose/node_log.hpp"
#include "cli/interrupt.hpp"
#include "cli/program_id.hpp"

namespace troupe {
namespace {

constexpr std::chrono::seconds patience_with_threads(3);

node_site checked_site(const cluster_config& config, const std::string& name) {
  const node_config* known = config.find(name);
  if (known && known->is_head()) {
    check_http_is_free(config);
    return_large_blocks();  // requests' bodies; workers instead have use for a step's blocks in the next one
  }
  node_site site = make_site(config, name);
  constexpr int beside_compute = 20;  // of actors and links
  require_threads(beside_compute + site.threads);
  return site;
}

}  // namespace

struct cluster_node::parts {
  node_site site;

  // Actors write to these members, so they must outlive all actors.
  std::mutex mutex;
  wake_signal end_signal;
  std::optional<int> ended;

  wire links;
  caf::actor_system_config config = system_config(2);
  caf::actor_system system{config};
  std::size_t threads_of_caf = own_threads(system);
  std::optional<head_node> head;
  std::optional<member_node> member;

  explicit parts(node_site from) : site(std::move(from)), links(bus_options_of(site)) {
    system.await_actors_before_shutdown(false);
  }

  void end(int code, const std::string& why) {
    if (code == 0)
      say(why);
    else
      warn(why);
    const std::lock_guard lock(mutex);
    ended = code;
    end_signal.give();
  }

  std::optional<int> end_code() {
    const std::lock_guard lock(mutex);
    return ended;
  }

  /// A thread that computes cannot be interrupted: it may be in a long step, clear many gigabytes for keys and values,
  /// or train with idle priority on a busy machine. Nobody needs what it makes, and files are whole at any time: the
  /// process ends without it, with the code that it would have ended with.
  [[noreturn]] void end_without_threads() {
    say("ends without what it still computes");
    try {
      check_interrupt();
    } catch (const interrupted& by) {
      std::_Exit(by.exit_code());
    }
    std::_Exit(end_code().value_or(0));
  }
};

cluster_node::cluster_node(const cluster_config& config, const std::string& name)
    : parts_(std::make_unique<parts>(checked_site(config, name))) {
  parts& own = *parts_;
  try {
    if (own.site.node.is_head())
      own.head.emplace(own.system, own.links, own.site);
    else
      own.member.emplace(own.system, own.links, own.site,
                         [&own](int code, const std::string& why) { own.end(code, why); });
  } catch (...) {
    own.links.stop();
    (void)await_own_threads(own.system, own.threads_of_caf, patience_with_threads);
    throw;
  }
  say(fmt::format("node {} of {}, by {}: troupe {}, program {}", name, config.name, config.source.string(),
                  TROUPE_VERSION, program_id()));
  say(own.links.endpoint() + ": listening");
}

cluster_node::~cluster_node() {
  if (parts_->head) parts_->head->stop();
  if (parts_->member) parts_->member->stop();
  parts_->links.stop();
  parts_->head.reset();
  parts_->member.reset();
  if (!await_own_threads(parts_->system, parts_->threads_of_caf, patience_with_threads)) parts_->end_without_threads();
}

int cluster_node::wait() {
  const interrupt_guard guard;
  std::array awaited{pollfd{parts_->end_signal.descriptor(), POLLIN, 0}, pollfd{interrupt_descriptor(), POLLIN, 0}};
  while (true) {
    if (const auto code = parts_->end_code()) return *code;
    if (is_interrupted() && !parts_->member) say("told to end");  // a member's agent says so itself
    check_interrupt();
    ::poll(awaited.data(), awaited.size(), -1);
  }
}

}  // namespace troupe
