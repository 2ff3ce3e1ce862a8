#include <sys/prctl.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/compose/compose.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

struct node_options {
  std::string cluster, name;
  bool listed = false;
};

/// Since it is gone for good, no failure: after one `up` would start it again and again.
int leave_out(const cluster_config& config, const std::string& name) {
  write_error(fmt::format(
      "troupe: {}: no node is called {} any more: if that is no mistake, it is left out; otherwise add it, and start "
      "troupe up again\n",
      config.label, name));
  return 0;
}

int node_command(const node_options& options) {
  ::prctl(PR_SET_NAME, "troupe");  // where `up` started it from its own image, ps would say "exe"
  const cluster_config config = read_cluster_config(options.cluster);
  if (!is_file_name(options.name)) refuse("--name {}: {}", options.name, file_name_rule);
  if (options.listed && !config.find(options.name)) return leave_out(config, options.name);
  return cluster_node(config, options.name).wait();
}

}  // namespace

void add_node(CLI::App& program, command& chosen) {
  const auto [own, options] = add_command(
      program, chosen, "node", "Run one node of a cluster; a name that is not in its file joins it", node_command);
  own.add_option("CLUSTER", options.cluster, "the cluster's TOML file")->required();
  own.add_option("--name", options.name, "which node")->required()->type_name("NAME");
  own.add_flag("--listed", options.listed, "end at once if the name is not in the file; so troupe up starts nodes");
}

}  // namespace troupe
