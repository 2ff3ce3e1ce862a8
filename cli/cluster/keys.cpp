#include <fmt/chrono.h>

#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "actors/http/access/api_keys.hpp"
#include "base/ascii.hpp"
#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cluster/config/config.hpp"
#include "model/engine/scheduling/sequence_request.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

struct keys_options {
  std::string cluster, name, from;
  std::optional<std::int64_t> requests_per_minute, tokens_per_minute, concurrent, weight;
  bool is_admin = false, json = false;
};

/// The limits before, replaced where a flag gave another.
rate_limits limits_of(const keys_options& options, const rate_limits& before) {
  return {.requests_per_minute = options.requests_per_minute.value_or(before.requests_per_minute),
          .tokens_per_minute = options.tokens_per_minute.value_or(before.tokens_per_minute),
          .concurrent = options.concurrent.value_or(before.concurrent)};
}

std::filesystem::path file_of(const keys_options& options) {
  return api_keys_file(read_cluster_config(options.cluster).state_dir);
}

/// On standard error, since scripts read what `add` prints. Naming the file shows whether it is the one that a running
/// service reads, whose own cluster file may name another folder.
int changed(const keys_options& options) {
  write_error(fmt::format("changed: {}\n", file_of(options).string()));
  return 0;
}

std::string text_of(const rate_limits& limits, std::int64_t weight) {
  std::string text;
  const auto add = [&](std::int64_t limit, const char* what) {
    if (limit > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", limit, what);
  };
  add(limits.requests_per_minute, "requests/min");
  add(limits.tokens_per_minute, "tokens/min");
  add(limits.concurrent, "at a time");
  if (text.empty()) text = "no limits";
  return weight == 1 ? text : text + fmt::format(", weight {}", weight);
}

/// Without its last line break. Empty where a new one is to be made.
std::string given_text(const keys_options& options) {
  if (options.from.empty()) return {};
  std::string text = detail::read_text(options.from, 4096);
  drop_line_end(text);
  if (text.empty()) refuse("{}: is empty: write the key into it", options.from);
  return text;
}

int add_key(const keys_options& options) {
  const std::string given = given_text(options);
  const std::string key = add_api_key(file_of(options),
                                      {.name = options.name,
                                       .limits = limits_of(options, {}),
                                       .weight = options.weight.value_or(1),
                                       .is_admin = options.is_admin},
                                      given);
  print(given.empty() ? key + "\n" : fmt::format("{}: added\n", options.name));
  if (const cluster_config config = read_cluster_config(options.cluster); !config.keys)
    write_error(fmt::format("keys are for HTTP alone: commands need none at {} (see troupe keygen)\n", config.listen));
  return changed(options);
}

int limit_key(const keys_options& options) {
  std::string now;
  limit_api_key(file_of(options), options.name, [&](api_key& key) {
    key.limits = limits_of(options, key.limits);
    key.weight = options.weight.value_or(key.weight);
    now = text_of(key.limits, key.weight);
  });
  print(fmt::format("{}: {}\n", options.name, now));
  return changed(options);
}

nlohmann::ordered_json json_of(const api_key& key) {
  nlohmann::ordered_json shown{{"name", key.name}, {"shown", key.shown}, {"created", key.created}};
  for (const auto& [name, limit] : rate_limit_fields) shown[name] = key.limits.*limit;
  shown["weight"] = key.weight;
  shown["admin"] = key.is_admin;
  return shown;
}

/// Null where there never was a key: an empty list lets nobody in.
nlohmann::ordered_json json_of(const std::optional<std::vector<api_key>>& keys) {
  if (!keys) return nullptr;
  auto list = nlohmann::ordered_json::array();
  for (const api_key& each : *keys) list.push_back(json_of(each));
  return list;
}

std::string text_of(const std::optional<std::vector<api_key>>& keys, const std::filesystem::path& file,
                    bool need_keys) {
  if (!keys && need_keys)
    return fmt::format(
        "there are no keys in {}, and the cluster's file says need_keys: the server lets nobody in until one is "
        "added\n",
        file.string());
  if (!keys)
    return fmt::format(
        "there are no keys in {}: whoever reaches the server may use it; one that runs and had keys "
        "lets nobody in\n",
        file.string());
  if (keys->empty()) return "no key is left: the server lets nobody in until one is added\n";
  std::string lines;
  for (const api_key& each : *keys)
    lines += fmt::format("{:<24} {}…  {:%Y-%m-%d %H:%M} UTC  {}{}\n", each.name, each.shown,
                         fmt::gmtime(static_cast<std::time_t>(each.created)), text_of(each.limits, each.weight),
                         each.is_admin ? ", admin" : "");
  return lines;
}

int list_keys(const keys_options& options) {
  const cluster_config config = read_cluster_config(options.cluster);
  const std::filesystem::path file = api_keys_file(config.state_dir);
  const auto keys = read_api_keys(file);
  if (options.json)
    print_json(json_of(keys));
  else
    print(text_of(keys, file, config.need_keys));
  return 0;
}

int revoke_key(const keys_options& options) {
  revoke_api_key(file_of(options), options.name);
  print(fmt::format("{}: revoked\n", options.name));
  return changed(options);
}

}  // namespace

void add_keys(CLI::App& program, command& chosen) {
  auto options = std::make_shared<keys_options>();
  CLI::App& group = *program.add_subcommand("keys", "List and change who may use a cluster's HTTP API");
  group.require_subcommand(1);
  const auto add = [&](const char* called, const char* what, int (*run)(const keys_options&)) -> CLI::App& {
    CLI::App& own = add_command(group, chosen, called, what, options, run);
    own.add_option("CLUSTER", options->cluster, "the cluster's file")->required();
    return own;
  };
  const auto add_name = [&](CLI::App& own) { own.add_option("NAME", options->name, "whose key it is")->required(); };
  const auto add_limits = [&](CLI::App& own) {
    const auto limit = [&](const char* flag, std::optional<std::int64_t>& to, const char* what) {
      own.add_option(flag, to, what)->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
    };
    limit("--requests-per-minute", options->requests_per_minute, "requests that compute something; 0: any number");
    limit("--tokens-per-minute", options->tokens_per_minute, "of prompts and answers; 0: any number");
    limit("--concurrent", options->concurrent, "requests in progress; 0: any number");
    own.add_option("--weight", options->weight,
                   "how much more of the cluster it gets than a key of weight 1 where both wait [1]")
        ->check(CLI::Range(std::int64_t{1}, most_weight));
  };
  CLI::App& adding = add("add", "Make a key; it is shown once. With the first one, nobody gets in without", add_key);
  add_name(adding);
  adding
      .add_option("--from", options->from,
                  "take the key in this file, such as one that clients have already, instead of a new one")
      ->type_name("FILE");
  add_limits(adding);
  adding.add_flag("--admin", options->is_admin,
                  "sees the files and jobs of all keys, and may load, replace and unload adapters");
  CLI::App& limiting = add("limit", "Give a key other limits; what is not given stays", limit_key);
  add_name(limiting);
  add_limits(limiting);
  add("list", "List all keys, by name", list_keys)
      .add_flag("--json", options->json, "print a JSON list, or null where there never was a key");
  add_name(add("revoke", "Let a key open nothing any more", revoke_key));
}

}  // namespace troupe
