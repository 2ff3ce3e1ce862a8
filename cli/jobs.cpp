#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/cluster_client.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/status_view.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct jobs_options {
  connect_options cluster;
  std::string id;
  bool json = false;
};

int list_jobs(const jobs_options& options) {
  const auto jobs = json::parse(cluster_client(options.cluster).command("job.list", R"({"limit":1000})"));
  if (options.json) return print_json(jobs), 0;
  const std::string text = jobs_table(jobs);
  print(text.empty() ? "there are no jobs\n" : text);
  return 0;
}

int cancel_job(const jobs_options& options) {
  const auto job = json::parse(cluster_client(options.cluster).command("job.cancel", json{{"id", options.id}}.dump()));
  print(fmt::format("{}: {}\n", options.id, job.value("state", "")));
  return 0;
}

}  // namespace

void add_jobs(CLI::App& program, command& chosen) {
  auto options = std::make_shared<jobs_options>();
  CLI::App& own = *program.add_subcommand("jobs", "What the cluster has accepted, newest first");
  add_connect(own, options->cluster);
  own.add_flag("--json", options->json, "print a JSON list");
  own.callback([options, &chosen] { chosen = [options] { return list_jobs(*options); }; });
}

void add_cancel(CLI::App& program, command& chosen) {
  auto options = std::make_shared<jobs_options>();
  CLI::App& own = *program.add_subcommand("cancel", "End a job; its outputs so far stay");
  own.add_option("ID", options->id, "as troupe jobs shows it")->required();
  add_connect(own, options->cluster);
  own.callback([options, &chosen] { chosen = [options] { return cancel_job(*options); }; });
}

}  // namespace troupe
