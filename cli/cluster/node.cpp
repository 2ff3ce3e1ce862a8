#include <memory>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/compose/compose.hpp"

namespace troupe {
namespace {

struct node_options {
  std::string cluster, name;
};

int node_command(const node_options& options) {
  return cluster_node(read_cluster_config(options.cluster), options.name).wait();
}

}  // namespace

void add_node(CLI::App& program, command& chosen) {
  auto options = std::make_shared<node_options>();
  CLI::App& own = *program.add_subcommand("node", "Run one node of a cluster; a name that is not in its file joins it");
  own.add_option("CLUSTER", options->cluster, "the cluster's TOML file")->required();
  own.add_option("--name", options->name, "which node")->required()->type_name("NAME");
  own.callback([options, &chosen] { chosen = [options] { return node_command(*options); }; });
}

}  // namespace troupe
