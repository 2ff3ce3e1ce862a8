#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

struct status_options {
  connect_options cluster;
  bool json = false;
};

int status(const status_options& options) {
  const auto answer = cluster_client(options.cluster).command("status", {});
  if (options.json)
    print_json(answer);
  else
    print(status_text(answer));
  return 0;
}

}  // namespace

void add_status(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "status", "Show the nodes, replicas, adapters and jobs of a cluster", status);
  add_connect(own, options.cluster);
  own.add_flag("--json", options.json, R"(print {"nodes","replicas","adapters","jobs","other_adapters","other_jobs"})");
}

}  // namespace troupe
