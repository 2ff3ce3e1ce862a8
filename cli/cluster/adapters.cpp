#include <filesystem>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/export_adapter.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct adapters_options {
  connect_options cluster;
  std::string name;
  std::string path, out;
  std::optional<std::uint32_t> version;
  bool json = false;
};

/// Page by page.
json all_versions(cluster_client& cluster) {
  json all = json::array();
  for (std::string last;;) {
    const json page = cluster.command("adapters.list", {{"after", last}});
    if (page.empty()) return all;
    for (const auto& each : page) all.push_back(each);
    last = page.back().at("version").get<std::string>();
  }
}

int list(const adapters_options& options) {
  cluster_client cluster(options.cluster);
  const json adapters = all_versions(cluster);
  if (options.json) {
    print_json(adapters);
    return 0;
  }
  const std::string text = adapters_table(adapters);
  print(text.empty() ? "there are no adapters\n" : text);
  return 0;
}

int load(const adapters_options& options) {
  if (options.path.empty() && options.name.find('/') != std::string::npos)
    refuse("{0} is a path: write troupe adapters load NAME --path {0}", options.name);
  json arguments{{"name", options.name}};
  if (!options.path.empty()) arguments["path"] = std::filesystem::absolute(options.path).string();
  const auto done = cluster_client(options.cluster).command("adapters.load", arguments);
  print(fmt::format("{}: {}\n", done.value("adapter", ""), done.value("state", "")));
  return 0;
}

/// Changes an adapter that is there.
json change(const adapters_options& options, const char* command, const json& arguments,
            cluster_client::repeating may = cluster_client::repeating::yes) {
  try {
    return cluster_client(options.cluster).command(command, arguments, may);
  } catch (const unknown_error& error) {
    refuse("{}: see troupe adapters list", error.what());
  }
}

int unload(const adapters_options& options) {
  const json done = change(options, "adapters.unload", {{"name", options.name}});
  const json gone = done.value("unloaded", json::array());
  if (gone.empty()) print(options.name + ": is unloaded already\n");
  for (const auto& each : gone) print(each.get<std::string>() + ": unloaded\n");
  return 0;
}

/// Done twice it would go back two versions, so it is never repeated automatically.
int rollback(const adapters_options& options) {
  json arguments{{"name", options.name}};
  if (options.version) arguments["version"] = *options.version;
  const auto may = options.version ? cluster_client::repeating::yes : cluster_client::repeating::no;
  const json done = change(options, "adapters.rollback", arguments, may);
  print(fmt::format("{}: answers as {} now\n", done.value("adapter", ""), options.name));
  return 0;
}

int export_to(const adapters_options& options) {
  cluster_client cluster(options.cluster);
  print(fmt::format("{}: {}\n", options.out, export_adapter(cluster, options.name, options.out)));
  return 0;
}

}  // namespace

void add_adapters(CLI::App& program, command& chosen) {
  auto options = std::make_shared<adapters_options>();
  CLI::App& group = *program.add_subcommand("adapters", "List and change the adapters that a cluster answers with");
  group.require_subcommand(1);
  const auto add = [&](const char* called, const char* what, int (*run)(const adapters_options&)) -> CLI::App& {
    CLI::App& own = add_command(group, chosen, called, what, options, run);
    add_connect(own, options->cluster);
    return own;
  };
  const auto add_name = [&](CLI::App& own, const char* what) {
    own.add_option("NAME", options->name, what)->required();
  };
  add("list", "List all versions", list).add_flag("--json", options->json, "print a JSON list");
  CLI::App& loading =
      add("load", "Publish a folder as PEFT writes it or a .gguf file, or take back what was unloaded", load);
  add_name(loading, "the adapter, or one version of it: name@2");
  loading
      .add_option("--path", options->path, "the folder or file, on the head's machine; without it NAME in adapters.dir")
      ->type_name("PATH");
  add_name(add("unload", "Give it no new requests", unload), "the adapter, or one version of it: name@2");
  CLI::App& back = add("rollback", "Let an earlier version answer", rollback);
  add_name(back, "the adapter");
  back.add_option("--to", options->version, "this version; without it the one before")->type_name("N");
  CLI::App& out = add("export", "Copy an adapter's files out of the cluster", export_to);
  add_name(out, "the adapter, or one version of it: name@2");
  out.add_option("--out", options->out, "a folder for them")->type_name("DIR")->required();
}

}  // namespace troupe
