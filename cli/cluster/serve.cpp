// One model, without a cluster's file: `troupe serve` writes the file, and then does what `troupe up` does with it.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "actors/http/access/api_keys.hpp"
#include "base/ascii.hpp"
#include "base/field_error.hpp"
#include "base/host_port.hpp"
#include "base/paths.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "cli/cluster/up.hpp"
#include "cli/commands.hpp"
#include "cli/model/model_options.hpp"
#include "cli/output.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe {
namespace {

struct serve_options {
  model_options model;
  std::vector<std::string> adapter;  ///< NAME=PATH
  std::vector<std::string> http_origins;
  std::string name, adapters, listen;  ///< empty: as a cluster's file without them
  std::optional<std::string> http;     ///< empty: none
  bool insecure = false, need_keys = false, detach = false;
};

std::filesystem::path whole_path(const std::string& path) {
  if (!is_utf8(path)) refuse("'{}' is no UTF-8, as a cluster's file must be: rename it", path);
  return plain_path(path);
}

/// What the model is called, in letters that a cluster's name may have.
std::string cluster_name(const std::string& model) {
  std::string name = model.substr(0, 64);
  for (char& each : name)
    if (!is_name({&each, 1})) each = '-';
  if (name.empty() || !is_letter_or_digit(name.front())) name = "model" + name.substr(0, 59);
  return name;
}

/// TOML reads texts as JSON writes them, but for one control character, which JSON leaves as it is. So it can be said
/// which flag has one.
std::string in_toml(const nlohmann::ordered_json& value) {
  std::string text = json_line(value);
  for (std::size_t at; (at = text.find('\x7f')) != text.npos;) text.replace(at, 1, "\\u007f");
  return text;
}

/// `key = value`, unless the user left it to the defaults.
template <class Value>
std::string setting(std::string_view key, const Value& value) {
  return value == Value() ? "" : fmt::format("{} = {}\n", key, in_toml(value));
}

std::string path_setting(const serve_options& options) {
  return setting("path", whole_path(options.model.path).string());
}

/// Relative folders are those of the user's own folder, not of the file's.
std::vector<std::string> named_adapters(const serve_options& options) {
  std::vector<std::string> named;
  for (const std::string& each : options.adapter) {
    const auto equals = each.find('=');
    if (equals == each.npos || equals == 0 || equals + 1 == each.size())
      refuse("--adapter {}: write NAME=PATH, the name that requests ask for and the adapter's folder or .gguf file",
             each);
    named.push_back(each.substr(0, equals + 1) + whole_path(each.substr(equals + 1)).string());
  }
  return named;
}

std::string cluster_text(const serve_options& options, const std::string& name, const std::string& state_dir = {}) {
  const model_options& model = options.model;
  std::string text = "# Written by `troupe serve`, each time anew. A copy is a file for `troupe up` like any other.\n";
  text += "[cluster]\n" + setting("name", name) + setting("state_dir", state_dir) + setting("listen", options.listen);
  if (options.http) text += fmt::format("http = {}\n", in_toml(*options.http));
  text += setting("http_origins", options.http_origins);
  text += setting("insecure", options.insecure) + setting("need_keys", options.need_keys);
  text += "\n[model]\n" + path_setting(options) + setting("name", options.name) + setting("quant", model.quant) +
          setting("keep", model.keep);
  text += setting("kv", model.kv) + setting("context", model.context);
  text += "\n[adapters]\n" + setting("preload", named_adapters(options));
  if (!options.adapters.empty()) text += setting("dir", whole_path(options.adapters).string());
  text += "\n[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\"]\n";
  text += "\n[[node]]\nname = \"w0\"\nroles = [\"worker\"]\n";
  text += setting("threads", model.threads) + setting("device", model.device);
  text += "\n# Works on fine-tunes (troupe train), with what the worker leaves. Costs nothing while there is none.\n";
  return text + "[[node]]\nname = \"coach\"\nroles = [\"trainer\"]\n";
}

/// As a cluster's file is checked, but in the words of the flags.
void check_open(const serve_options& options) {
  const auto check = [&](std::string_view flag, const std::string& address, const auto& place) {
    if (place && !is_loopback_host(place->host) && !options.insecure)
      refuse("{} {} can be reached from other machines, without encryption: add --insecure in a network that you trust",
             flag, address);
  };
  const std::string http = options.http.value_or("");
  check("--http", http, split_host_port(http));
  check("--listen", options.listen, split_endpoint(options.listen));
}

/// A state folder that is another's.
struct taken_folder {
  std::filesystem::path folder;
  std::string model;  ///< as its file names it; empty: of a cluster that has a file of its own
};

struct written_cluster {
  std::string text;
  cluster_config config;
  std::vector<taken_folder> passed = {};  ///< that would have been its own
};

/// The file says where the state is: whoever ends the cluster by it may have another home.
written_cluster cluster_called(const std::string& name, const serve_options& options) {
  written_cluster made;
  made.config = parse_cluster_config(cluster_text(options, name), "troupe serve");
  made.text = cluster_text(options, name, made.config.state_dir.string());
  made.config.label = made.config.source = made.config.state_dir / "cluster.toml";
  return made;
}

/// The state folder, if it is that of another model, or of a cluster that has a file of its own.
std::optional<taken_folder> taken_by_another(const cluster_config& config, const serve_options& options) {
  std::error_code ignored;
  if (!is_folder(config.state_dir) || std::filesystem::is_empty(config.state_dir, ignored)) return std::nullopt;
  std::ifstream file(config.source, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find("\n" + path_setting(options)) != text.npos) return std::nullopt;
  constexpr std::string_view key = "\npath = ";
  const auto at = text.find(key);
  if (at == text.npos) return taken_folder{config.state_dir, {}};
  const auto begin = at + key.size();
  return taken_folder{config.state_dir, text.substr(begin, text.find('\n', begin) - begin)};
}

/// Models whose folders have the same name are told apart by a number: `model`, `model-2` and so on.
written_cluster own_cluster(const serve_options& options) {
  const std::string name =
      cluster_name(options.name.empty() ? model_name_of(whole_path(options.model.path)) : options.name);
  written_cluster made = cluster_called(name, options);
  std::vector<taken_folder> passed;
  for (int number = 2; const auto taken = taken_by_another(made.config, options); ++number) {
    passed.push_back(*taken);
    const std::string end = fmt::format("-{}", number);
    made = cluster_called(name.substr(0, 64 - end.size()) + end, options);
  }
  made.passed = std::move(passed);
  return made;
}

std::string whose_it_is(const taken_folder& taken) {
  return fmt::format("{} is the state folder of {}", taken.folder.string(),
                     taken.model.empty() ? "a cluster with a file of its own" : "the model " + taken.model);
}

std::string way_into(const taken_folder& taken) {
  if (taken.model.empty()) return {};
  return fmt::format("to go on there, write this model's path into {}", (taken.folder / "cluster.toml").string());
}

/// A model that moved, as updated downloads do, would else be open to all where it needed keys before.
void check_keys_of_passed(const written_cluster& made) {
  const cluster_config& config = made.config;
  if (config.http.empty() || config.need_keys || path_exists(api_keys_file(config.state_dir))) return;
  for (const taken_folder& taken : made.passed) {
    if (!path_exists(api_keys_file(taken.folder))) continue;
    const std::string way = way_into(taken);
    refuse(
        "{}, which has API keys, and {} would answer without: {}{}--need-keys gives it keys of its own, and another "
        "--name none",
        whose_it_is(taken), config.name, way, way.empty() ? "" : "; ");
  }
}

void tell_of_passed(const written_cluster& made) {
  for (const taken_folder& taken : made.passed) {
    const std::string way = way_into(taken);
    write_error(fmt::format("troupe: {}: its keys, adapters and jobs stay there, and this is {}{}{}\n",
                            whose_it_is(taken), made.config.name, way.empty() ? "" : "; ", way));
  }
}

/// The cluster, once all that `up` checks is checked. Errors name flags instead of lines, since the user wrote none.
written_cluster checked_cluster(const serve_options& options) {
  try {
    written_cluster made = own_cluster(options);
    check_keys_of_passed(made);
    check_before_up(made.config);
    return made;
  } catch (const config_error& error) {
    const std::string& key = error.key();
    throw field_error(key == "preload" ? "adapter" : key == "dir" ? "adapters" : key, error.problem());
  }
}

int serve(const serve_options& options) {
  check_keep(options.model);
  check_open(options);
  const written_cluster made = checked_cluster(options);
  tell_of_passed(made);
  make_state_folder(made.config.state_dir);
  write_file(made.config.source, made.text);
  hold_up(made.config, options.detach);
  return 0;
}

}  // namespace

void add_serve(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "serve", "Serve a model on this machine, without a cluster's file", serve);
  add_model(own, options.model);
  add_quant(own, options.model);
  add_keep(own, options.model);
  own.add_option("--kv", options.model.kv, "what keys and values are cached in: f16, f32 or int8 [f16]")
      ->type_name("KIND");
  add_context(own, options.model);
  add_threads(own, options.model);
  add_device(own, options.model);
  own.add_option("--name", options.name,
                 "what requests call the model [its folder's name, or its file's without .gguf]");
  own.add_option("--adapter", options.adapter,
                 "a LoRA adapter, as PEFT's folder or a .gguf file, and what requests call it; may be repeated")
      ->type_name("NAME=PATH");
  own.add_option("--adapters", options.adapters,
                 "a folder of adapters, asked for by the names of their folders or .gguf files")
      ->type_name("DIR");
  own.add_option("--http", options.http, "HOST:PORT of the page and the API, or \"\" for none [127.0.0.1:8000]")
      ->type_name("ADDRESS");
  own.add_option("--http-origins", options.http_origins,
                 "the origin of a web page from elsewhere that may use the API (CORS); may be repeated")
      ->type_name("ORIGIN");
  own.add_flag("--need-keys", options.need_keys,
               "answer HTTP to holders of keys alone, even while there are none (troupe keys add)");
  own.add_option("--listen", options.listen, "where other commands reach it [tcp://127.0.0.1:7700]")
      ->type_name("ENDPOINT");
  own.add_flag("--insecure", options.insecure, "allow addresses that other machines reach, not encrypted");
  own.add_flag("--detach", options.detach, "return once it serves; troupe down ends it");
}

}  // namespace troupe
