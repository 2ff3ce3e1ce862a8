#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/whole_file.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/collect_job.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/train/loss_curve.hpp"
#include "cli/train/train_cluster.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct jobs_options {
  connect_options cluster;
  std::string id, out;
  bool json = false;
};

/// Page by page, as others wait for the journal, too. Jobs may be removed between two pages, also the last of one.
json all_jobs(cluster_client& cluster) {
  constexpr std::size_t at_once = 1000;
  json all = json::array(), wanted{{"limit", at_once}};
  for (;;) {
    const json page = cluster.command("job.list", wanted);
    all.insert(all.end(), page.begin(), page.end());
    if (page.size() < at_once) return all;
    wanted["below"] = page.back().at("number");
  }
}

int list_jobs(const jobs_options& options) {
  cluster_client cluster(options.cluster);
  const json jobs = all_jobs(cluster);
  if (options.json) {
    print_json(jobs);
    return 0;
  }
  const std::string text = jobs_table(jobs);
  print(journal_problem(cluster.command("status", {})));
  print(text.empty() ? "there are no jobs\n" : text);
  return 0;
}

int change_job(const jobs_options& options, const char* command) {
  const json job = cluster_client(options.cluster).command(command, {{"id", options.id}});
  print(fmt::format("{}: {}\n", options.id, job.value("state", "")));
  return 0;
}

int cancel_job(const jobs_options& options) {
  return change_job(options, "job.cancel");
}

int forget_job(const jobs_options& options) {
  cluster_client(options.cluster).command("job.forget", {{"id", options.id}});
  print(fmt::format("{}: forgotten\n", options.id));
  return 0;
}

int collect_answers(const jobs_options& options) {
  cluster_client cluster(options.cluster);
  const std::string out = options.out.empty() ? "-" : options.out;
  check_answered(collect_job(cluster, options.id, out), out);
  return 0;
}

int follow_job(const jobs_options& options) {
  cluster_client cluster(options.cluster);
  return follow_training(cluster, options.id, options.json);
}

/// Of a fine-tune: every event there is, page by page.
void for_each_event(cluster_client& cluster, const std::string& id, const std::function<void(const json&)>& take) {
  for (std::uint64_t last = 0;;) {
    const json page = cluster.command("job.events", {{"id", id}, {"after", last}});
    check_is_training(page.at("job"));
    if (page.at("events").empty()) return;
    for (const auto& event : page.at("events")) {
      last = event.at("number").get<std::uint64_t>();
      take(event);
    }
  }
}

int show_events(const jobs_options& options) {
  cluster_client cluster(options.cluster);
  for_each_event(cluster, options.id, print_json);
  return 0;
}

/// Who goes on from a checkpoint makes the steps behind it again: each counts once, as it was made last.
void add_point(std::vector<std::pair<double, double>>& series, double step, double loss) {
  while (!series.empty() && series.back().first >= step) series.pop_back();
  series.emplace_back(step, loss);
}

loss_points points_of(cluster_client& cluster, const std::string& id) {
  loss_points points;
  for_each_event(cluster, id, [&](const json& event) {
    const auto& data = event.at("data");
    if (event.at("kind") != metrics_event || !data.is_object()) return;
    const double step = data.value("step", 0.0);
    if (data.contains("loss")) add_point(points.training, step, data["loss"].get<double>());
    if (data.contains("validation_loss")) add_point(points.validation, step, data["validation_loss"].get<double>());
  });
  return points;
}

int draw_curve(const jobs_options& options) {
  cluster_client cluster(options.cluster);
  const std::string picture = loss_curve(points_of(cluster, options.id), options.id);
  if (options.out.empty() || options.out == "-") {
    print(picture);
    return 0;
  }
  write_chosen_file(options.out, picture);
  return 0;
}

}  // namespace

void add_jobs(CLI::App& program, command& chosen) {
  auto options = std::make_shared<jobs_options>();
  CLI::App& own = *program.add_subcommand("jobs", "List what the cluster has accepted, newest first");
  add_connect(own, options->cluster);
  own.add_flag("--json", options->json, "print a JSON list");
  own.require_subcommand(0, 1);
  own.callback([&own, &chosen, options] {
    if (own.get_subcommands().empty()) chosen = [options] { return list_jobs(*options); };
  });
  CLI::App& listing = add_command(own, chosen, "list", "The same as without a command", options, list_jobs);
  add_connect(listing, options->cluster);
  listing.add_flag("--json", options->json, "print a JSON list");
  const auto add = [&](const char* called, const char* what, int (*run)(const jobs_options&)) -> CLI::App& {
    CLI::App& sub = add_command(own, chosen, called, what, options, run);
    sub.add_option("ID", options->id, "as troupe jobs shows it")->required();
    add_connect(sub, options->cluster);
    return sub;
  };
  add("pause", "Let a fine-tune stand still, with a checkpoint",
      [](const jobs_options& job) { return change_job(job, "job.pause"); });
  add("resume", "Let it go on", [](const jobs_options& job) { return change_job(job, "job.resume"); });
  add("forget", "Delete a job that is over, with its outputs", forget_job);
  add("collect", "Write the answers of a batch, in order, until it is over", collect_answers)
      .add_option("--out", options->out, "goes on where the file ends [standard output]")
      ->type_name("OUT.jsonl");
  add("follow", "Show how a fine-tune goes until it is over", follow_job)
      .add_flag("--json", options->json, "print the job at the end as JSON");
  add("events", "Print what happened to a job: a line of JSON each", show_events);
  add("curve", "Draw a fine-tune's losses as a picture", draw_curve)
      .add_option("--out", options->out, "an SVG file [standard output]")
      ->type_name("FILE");
}

void add_cancel(CLI::App& program, command& chosen) {
  const auto [own, options] = add_command(
      program, chosen, "cancel", "End a job: a batch keeps its outputs so far, a fine-tune leaves nothing", cancel_job);
  own.add_option("ID", options.id, "as troupe jobs shows it")->required();
  add_connect(own, options.cluster);
}

}  // namespace troupe
