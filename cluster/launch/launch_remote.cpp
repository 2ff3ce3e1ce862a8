#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>

#include "cluster/config/config_address.hpp"
#include "cluster/launch/launch.hpp"

namespace troupe {
namespace {

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address && address->sa_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(), text.size());
  if (address && address->sa_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(), text.size());
  return text.data();
}

bool is_own_address(const std::string& host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  bool found = false;
  for (const ifaddrs* each = list; each && !found; each = each->ifa_next) found = text_of(each->ifa_addr) == host;
  ::freeifaddrs(list);
  return found;
}

/// One word for a shell.
std::string quoted_word(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// Runs a command that must end when the connection does, even if it is stopped then: when the other end closes,
/// standard input closes, and `cat` sees that.
std::string tied_to_input(const std::string& command) {
  return "exec 3<&0; " + command +
         " </dev/null 3<&- & node=$!; "
         "(exec >/dev/null 2>&1; cat <&3; kill -TERM $node && sleep 5 && kill -KILL $node) & "
         "exec 3<&-; wait $node";
}

}  // namespace

std::string machine_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool is_this_machine(const std::string& host) {
  return is_loopback_host(host) || host == machine_name() || (is_numeric_host(host) && is_own_address(host));
}

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
