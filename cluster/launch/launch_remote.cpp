#include "base/shell_word.hpp"
#include "cluster/launch/launch.hpp"
#include "cluster/launch/machine.hpp"

namespace troupe {
namespace {

/// Runs a command that must end when the connection does, even if it is stopped then: when the other end closes,
/// standard input closes, and `cat` sees that. The user there may have any shell, so it only starts `sh`.
std::string tied_to_input(const std::string& command) {
  return "exec sh -c " + quoted_word("exec 3<&0; " + command +
                                     " </dev/null 2>&1 3<&- & node=$!; "
                                     "(exec >/dev/null 2>&1; cat <&3; kill -TERM $node || exit; "
                                     "for i in 1 2 3 4 5; do sleep 1; kill -0 $node || exit; done; kill -KILL $node) & "
                                     "exec 3<&-; wait $node");
}

}  // namespace

bool is_remote(const node_config& node) {
  return !node.ssh_target.empty() || !is_this_machine(node.host);
}

std::vector<std::string> node_command(const cluster_config& config, const node_config& node,
                                      const std::filesystem::path& program) {
  if (!is_remote(node)) return {program.string(), "node", config.source.string(), "--name", node.name, "--listed"};
  const std::string file = node.config.empty() ? config.source.string() : node.config.string();
  std::vector<std::string> words = config.ssh;
  words.insert(words.end(), node.ssh_options.begin(), node.ssh_options.end());
  words.push_back(node.ssh_target.empty() ? node.host : node.ssh_target);
  words.push_back(
      tied_to_input(quoted_word(node.program) + " node " + quoted_word(file) + " --name " + node.name + " --listed"));
  return words;
}

}  // namespace troupe
