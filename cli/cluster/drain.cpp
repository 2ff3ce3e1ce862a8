#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/cluster/cluster_client.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

struct drain_options {
  connect_options cluster;
  std::string node;
};

int drain(const drain_options& options) {
  cluster_client(options.cluster).command("drain", {{"name", options.node}});
  print(fmt::format(
      "{}: its requests go on elsewhere, its process ends; troupe node CLUSTER.toml --name {} brings it back\n",
      options.node, options.node));
  return 0;
}

}  // namespace

void add_drain(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "drain",
                  "Move a worker's requests elsewhere and end it, so that its machine can be taken away", drain);
  own.add_option("NAME", options.node, "the node, as troupe status shows it")->required();
  add_connect(own, options.cluster);
}

}  // namespace troupe
