#include "cluster/launch/hang_policy.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// A longer pause between two reports means that the head, or this process, was stopped: that time says nothing of the
/// node.
constexpr duration longest_silence = std::chrono::seconds(1);

}  // namespace

/// While another process has the node's name, perhaps the one before, this one cannot join.
hang_policy::verdict hang_policy::judge(const node_process& node, const entry& said, instant now) {
  if (said.state == "missing" || !is_about(node, said.process)) {
    const bool can_join = said.state != "alive" && said.state != "suspect";
    return can_join && is_too_long(unheard_, node, now, start_patience_) ? verdict::unheard : verdict::waits;
  }
  unheard_.erase(node.name);
  if (said.state == "lost") return is_too_long(lost_, node, now, patience_) ? verdict::lost : verdict::waits;
  lost_.erase(node.name);
  return said.state == "alive" ? verdict::works : verdict::waits;
}

/// Whether the head speaks of the process that runs now, not of one before. Of a remote node it knows only processes at
/// the other end: the one that it knew before this ssh started belongs to an earlier ssh.
bool hang_policy::is_about(const node_process& node, pid_t process) {
  if (!node.is_remote) return node.pid == process;
  connection& known = behind_.try_emplace(node.name, connection{node.pid, process}).first->second;
  if (known.process != process) known = {node.pid, process};
  return known.child == node.pid;
}

bool hang_policy::is_too_long(silences& of, const node_process& node, instant now, duration patience) {
  silence& known = of.try_emplace(node.name, silence{node.pid, now, patience}).first->second;
  if (known.process != node.pid)
    known = {node.pid, now, known.lasted >= known.patience ? 2 * known.patience : known.patience};
  known.lasted += std::min(now - known.noted, longest_silence);
  known.noted = now;
  return known.lasted >= known.patience;
}

}  // namespace troupe
