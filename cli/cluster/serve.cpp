// One model, without a cluster's file: `troupe serve` writes the file, and then does what `troupe up` does with it.
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "base/field_error.hpp"
#include "base/host_port.hpp"
#include "base/whole_file.hpp"
#include "cli/cluster/serve_folder.hpp"
#include "cli/cluster/up.hpp"
#include "cli/commands.hpp"
#include "cli/model/model_options.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe {
namespace {

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
