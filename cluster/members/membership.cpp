#include "cluster/members/membership.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include <fmt/format.h>

#include "base/ascii.hpp"
#include "base/host_port.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

/// If there are more, the oldest are forgotten: incarnations are random, so none of them comes back by chance.
constexpr std::size_t max_fenced = 1 << 16;

constexpr duration remembered_for = std::chrono::minutes(10);  // nodes that are gone

/// Fit to be shown on a terminal.
bool is_plain(std::string_view text, std::size_t longest) {
  return text.size() <= longest &&
         std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

bool is_plain(const std::vector<std::string>& texts) {
  return texts.size() <= 16 && std::all_of(texts.begin(), texts.end(), [](auto& text) { return is_plain(text, 32); });
}

/// What is wrong with a hello beside its name, whatever the cluster is like; nullptr if nothing is.
const char* fault_of(const node_hello& hello) {
  if (!is_plain(hello.cluster, 255)) return "its cluster has no plain name";
  if (hello.incarnation == incarnation_id{}) return "its incarnation is 0";
  if (!is_plain(hello.host, 255)) return "its host is no host name";
  if (!is_plain(hello.machine, 255)) return "its machine has no plain name";
  if (!is_plain(hello.endpoint, 255)) return "its endpoint is none";
  if (!is_plain(hello.meeting, 255)) return "its meeting place is none";
  if (!is_plain(hello.roles)) return "its roles are none";
  if (!is_plain(hello.build, 255)) return "its build is no plain text";
  if (!std::isfinite(hello.speed) || hello.speed < 0) return "its speed is no number";
  return nullptr;
}

template <class... Args>
join_refusal refusal(join_refusal_reason reason, fmt::format_string<Args...> format, Args&&... args) {
  return {reason, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace

std::string_view name_of(node_state state) {
  constexpr std::array<std::string_view, 4> names{"alive", "suspect", "lost", "left"};
  return names[to_size(state)];
}

membership::membership(options chosen) : options_(std::move(chosen)), detector_(options_.detector) {
  assert(options_.max_nodes > 0);
}

result<joined, join_refusal> membership::join(node_hello hello, instant now, bool replaces) {
  if (const auto wrong = check(hello)) return *wrong;
  if (heard(hello.incarnation, now)) return joined{};
  if (const auto taken = check_name_is_free(hello, now, replaces)) return *taken;
  if (!make_room(hello.name)) {
    return refusal(join_refusal_reason::full, "node {}: the cluster has {} nodes, as many as it may", hello.name,
                   members());
  }
  return admit(std::move(hello), now);
}

std::optional<join_refusal> membership::check(const node_hello& hello) const {
  using reason = join_refusal_reason;
  if (!is_file_name(hello.name))
    return refusal(reason::invalid, "a node's hello: its name cannot be used: {}", file_name_rule);
  if (const char* fault = fault_of(hello)) return refusal(reason::invalid, "node {}: {}", hello.name, fault);
  if (hello.cluster != options_.cluster)
    return refusal(reason::other_cluster,
                   "node {}: belongs to the cluster {}, but {} listens here: give one of them another address",
                   hello.name, hello.cluster, options_.cluster);
  if (is_fenced(hello.incarnation)) {
    return refusal(reason::fenced, "node {}: was given up: join as a new incarnation", hello.name);
  }
  if (const auto known = names_.find(hello.incarnation); known != names_.end() && known->second != hello.name) {
    return refusal(reason::invalid, "node {}: is a member as {} already", hello.name, known->second);
  }
  if (hello.build != options_.build) {
    return refusal(
        reason::other_build,
        "node {}: its program is {}, the head's {}: copy the head's program to it, and start what still runs "
        "another one anew",
        hello.name, hello.build, options_.build);
  }
  const bool must_have_it = hello.is_worker() || hello.model != model_id{};
  if (options_.model != model_id{} && hello.model != options_.model && must_have_it) {
    return refusal(reason::other_model,
                   "node {}: has model {:016x}, the cluster runs {:016x}: give it the same files and quant", hello.name,
                   hello.model.value, options_.model.value);
  }
  return {};
}

std::optional<join_refusal> membership::check_name_is_free(const node_hello& hello, instant now, bool replaces) const {
  const node_entry* other = find(hello.name);
  if (other == nullptr || !other->is_member()) return {};
  if (replaces && on_one_host(other->hello.host, hello.host)) return {};
  const duration silence = detector_.silence(other->hello.incarnation, now);
  const bool is_suspect = other->state == node_state::suspect || silence >= options_.detector.suspect_after;
  if (is_suspect) return {};
  return refusal(join_refusal_reason::name_taken,
                 "node {}: a node of this name is alive on {} (pid {}): stop it first, or take another name",
                 hello.name, other->hello.host, other->hello.pid);
}

bool membership::make_room(std::string_view name) {
  if (nodes_.size() < options_.max_nodes || nodes_.contains(name)) return true;
  auto oldest = nodes_.end();
  for (auto each = nodes_.begin(); each != nodes_.end(); ++each) {
    if (each->second.is_member()) continue;
    if (oldest == nodes_.end() || each->second.gone_at < oldest->second.gone_at) oldest = each;
  }
  if (oldest == nodes_.end()) return false;
  nodes_.erase(oldest);
  return true;
}

joined membership::admit(node_hello hello, instant now) {
  node_entry& node = nodes_[hello.name];
  joined answer;
  if (node.hello.incarnation != incarnation_id{} && node.is_member()) {
    answer.replaced = node.hello.incarnation;
    fence(node, node_state::lost, now);
  }
  node = {};
  node.heard_at = now;
  names_.emplace(hello.incarnation, hello.name);
  detector_.watch(hello.incarnation, now);
  node.hello = std::move(hello);
  return answer;
}

bool membership::heard(incarnation_id node, instant now) {
  node_entry* member = find_member(node);
  if (member == nullptr) return false;
  detector_.heard(node, now);
  member->heard_at = now;
  member->state = node_state::alive;
  return true;
}

bool membership::heard(incarnation_id node, instant now, const node_report& report) {
  if (!heard(node, now)) return false;
  find_member(node)->report = report;
  return true;
}

void membership::closed(incarnation_id node, instant now) {
  node_entry* member = find_member(node);
  if (member == nullptr) return;
  detector_.closed(node, now);
  member->state = node_state::suspect;
}

std::vector<std::string> membership::tick(instant now) {
  using verdict = failure_detector::verdict;
  std::vector<std::string> lost;
  for (const auto& change : detector_.tick(now)) {
    node_entry& node = *find_member(change.node);
    if (change.judged == verdict::alive) node.state = node_state::alive;
    if (change.judged == verdict::suspect) node.state = node_state::suspect;
    if (change.judged != verdict::lost) continue;
    lost.push_back(node.hello.name);
    fence(node, node_state::lost, now);
  }
  forget_old(now);
  return lost;
}

void membership::send_off(incarnation_id node, node_state state, instant now) {
  if (node_entry* member = find_member(node)) fence(*member, state, now);
}

const node_entry* membership::find(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

const node_entry* membership::find(incarnation_id node) const {
  const auto found = names_.find(node);
  return found == names_.end() ? nullptr : find(found->second);
}

node_entry* membership::find_member(incarnation_id node) {
  return const_cast<node_entry*>(std::as_const(*this).find(node));
}

std::vector<node_entry> membership::list() const {
  std::vector<node_entry> all;
  all.reserve(nodes_.size());
  for (const auto& [name, node] : nodes_) all.push_back(node);
  return all;
}

void membership::fence(node_entry& node, node_state state, instant now) {
  const incarnation_id incarnation = node.hello.incarnation;
  node.state = state;
  node.gone_at = now;
  names_.erase(incarnation);
  detector_.forget(incarnation);
  remember_fenced(incarnation);
}

void membership::remember_fenced(incarnation_id node) {
  if (!fenced_.insert(node).second) return;
  fenced_order_.push_back(node);
  if (fenced_order_.size() <= max_fenced) return;
  fenced_.erase(fenced_order_.front());
  fenced_order_.pop_front();
}

void membership::forget_old(instant now) {
  std::erase_if(
      nodes_, [&](const auto& each) { return !each.second.is_member() && now - each.second.gone_at > remembered_for; });
}

}  // namespace troupe
