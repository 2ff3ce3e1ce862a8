#include <fmt/chrono.h>

#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "actors/http/api_keys.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cluster/config.hpp"

namespace troupe {
namespace {

struct keys_options {
  std::string cluster, name;
};

std::filesystem::path file_of(const keys_options& options) {
  return api_keys_file(read_cluster_config(options.cluster).state_dir);
}

int add_key(const keys_options& options) {
  const std::string key = add_api_key(file_of(options), options.name);
  print(key + "\n");
  return 0;
}

int list_keys(const keys_options& options) {
  const auto keys = read_api_keys(file_of(options));
  if (!keys) return print("there are no keys: whoever reaches the server may use it\n"), 0;
  for (const api_key& each : *keys)
    print(fmt::format("{:<24} {}…  {:%Y-%m-%d %H:%M}\n", each.name, each.shown,
                      fmt::gmtime(static_cast<std::time_t>(each.created))));
  return 0;
}

int revoke_key(const keys_options& options) {
  revoke_api_key(file_of(options), options.name);
  print(fmt::format("{}: revoked\n", options.name));
  return 0;
}

}  // namespace

void add_keys(CLI::App& program, command& chosen) {
  auto options = std::make_shared<keys_options>();
  CLI::App& group = *program.add_subcommand("keys", "Who may use a cluster's HTTP API");
  group.require_subcommand(1);
  const auto add = [&](const char* called, const char* what, int (*run)(const keys_options&)) -> CLI::App& {
    CLI::App& own = *group.add_subcommand(called, what);
    own.add_option("CLUSTER", options->cluster, "the cluster's file")->required();
    own.callback([options, run, &chosen] { chosen = [options, run] { return run(*options); }; });
    return own;
  };
  const auto add_name = [&](CLI::App& own) { own.add_option("NAME", options->name, "whose key it is")->required(); };
  add_name(add("add", "Make a key; it is shown once. With the first one, nobody gets in without", add_key));
  add("list", "All keys, by name", list_keys);
  add_name(add("revoke", "Let a key open nothing any more", revoke_key));
}

}  // namespace troupe
