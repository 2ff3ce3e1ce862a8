#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "transport/zmq/curve.hpp"

namespace troupe {
namespace {

struct keygen_options {
  std::string out;
  std::string client;
};

int keygen(const keygen_options& options) {
  const std::filesystem::path folder = options.out;
  if (!options.client.empty()) {
    add_client_key(folder, options.client);
    print(fmt::format("{}: give it to whom it is for\n", (folder / (options.client + ".key")).string()));
    return 0;
  }
  write_keys(folder);
  print(
      fmt::format("{0}: for the nodes: keys = \"{0}\" in [cluster] of the cluster's file, on every host\n"
                  "{1}: for people: troupe … --key {1}\n",
                  folder.string(), (folder / "client.key").string()));
  return 0;
}

}  // namespace

void add_keygen(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "keygen", "Make the keys of a cluster beyond one machine", keygen);
  own.add_option("--out", options.out, "a folder for them; none is overwritten")->type_name("DIR")->required();
  own.add_option("--client", options.client, "one more client's key beside those in DIR")->type_name("NAME");
}

}  // namespace troupe
