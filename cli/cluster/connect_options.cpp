#include "cli/cluster/connect_options.hpp"

#include <cstdlib>

#include <CLI/CLI.hpp>

#include "base/shell_word.hpp"
#include "cluster/config/config.hpp"

namespace troupe {
namespace {

std::string flag_or_variable(const std::string& flag, const char* variable, const char* otherwise) {
  if (!flag.empty()) return flag;
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

}  // namespace

void add_connect(CLI::App& command, connect_options& options) {
  command.add_option("--connect", options.connect, "the cluster's head [TROUPE_CONNECT, else tcp://127.0.0.1:7700]")
      ->type_name("ENDPOINT");
  command.add_option("--key", options.key, "a client's key file from troupe keygen [TROUPE_KEY]")->type_name("FILE");
}

std::string endpoint_of(const connect_options& options) {
  return flag_or_variable(options.connect, "TROUPE_CONNECT", default_endpoint);
}

std::string key_of(const connect_options& options) {
  return options.ignores_environment ? options.key : flag_or_variable(options.key, "TROUPE_KEY", "");
}

std::string flags_of(const connect_options& options) {
  std::string flags;
  if (!options.connect.empty()) flags += " --connect " + typed_word(options.connect);
  if (!options.key.empty()) flags += " --key " + typed_word(options.key);
  return flags;
}

}  // namespace troupe
