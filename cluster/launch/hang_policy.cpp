#include "cluster/launch/hang_policy.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// A longer pause between two reports means that the head, or this process, was stopped: that time says nothing of the
/// node.
constexpr duration longest_silence = std::chrono::seconds(1);

}  // namespace

bool hang_policy::is_behind(const std::string& node, pid_t child, pid_t process) {
  connection& known = behind_.try_emplace(node, connection{child, process}).first->second;
  if (known.process != process) known = {child, process};
  return known.child == child;
}

bool hang_policy::note_lost(const std::string& node, pid_t process, instant now) {
  const auto [found, is_new] = lost_.try_emplace(node, loss{process, now});
  loss& known = found->second;
  if (!is_new && known.process != process) known = {process, now};
  known.lasted += std::min(now - known.heard, longest_silence);
  known.heard = now;
  return known.lasted >= patience_;
}

}  // namespace troupe
