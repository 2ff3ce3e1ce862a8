// Where nodes listen, and who can reach them there.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cluster/config/config_address.hpp"
#include "cluster/config/config_impl.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe::detail {
namespace {

void check_head_port(const cluster_config& config) {
  const auto place = split_endpoint(config.listen);
  if (place && place->port == 0)
    refuse_at(config, "cluster.listen", "listen has the port 0: nodes and clients have to know the port, name one");
}

/// A name may have several addresses, or one of another machine. Before the % is an address, behind it its zone.
void check_named(const cluster_config& config, const std::string& key, const std::string& endpoint) {
  const auto place = split_endpoint(endpoint);
  if (!place || place->host == "localhost" || is_any_host(place->host)) return;
  if (is_numeric_host(place->host.substr(0, place->host.find('%')))) return;
  refuse_at(config, key,
            "listen has the name {}: name an address of this machine by its number, or listen at every one with "
            "tcp://*:{}",
            place->host, place->port);
}

/// Only this machine may reach an endpoint that is not encrypted, unless the file says insecure.
void check_open(const cluster_config& config, const std::string& key, const std::string& endpoint) {
  const auto place = split_endpoint(endpoint);
  if (!place || is_loopback_host(place->host) || config.keys || config.insecure) return;
  refuse_at(config, key,
            "{} can be reached from other machines without keys: run troupe keygen and set keys in [cluster], or set "
            "insecure = true (troupe serve: --insecure) in a network that you trust",
            endpoint);
}

void check_http(const cluster_config& config) {
  const auto place = split_host_port(config.http);
  if (place && place->port == 0)
    refuse_at(config, "cluster.http", "http has the port 0: clients have to know it, name one");
  if (place && !is_loopback_host(place->host) && !config.insecure)
    refuse_at(config, "cluster.http",
              "http at {} can be reached from other machines, without encryption: use 127.0.0.1 behind a proxy, or set "
              "insecure = true (troupe serve: --insecure) in a network that you trust",
              config.http);
}

void check_listen(const cluster_config& config, const node_config& node) {
  if (node.is_head() && node.listen != config.listen)
    refuse_at(config, node_key(node.name, "listen"),
              "{} is the head, which listens where [cluster] says: take this out", node.name);
  const std::string own = node_key(node.name, "listen");
  check_named(config, own, node.listen);
  check_open(config, config.places.contains(own) ? own : node_key(node.name, "host"), node.listen);
}

/// Whether the node can be reached from another machine, by what it listens at and how others call it.
bool is_reachable(const node_config& node) {
  const auto place = split_endpoint(node.listen);
  if (!place || is_loopback_host(place->host)) return false;
  return !is_any_host(place->host) || !is_loopback_host(node.host);
}

/// Which key makes the node out of reach, and what to do there. One that listens at every address lacks only a host.
std::pair<std::string, const char*> way_to_reach(const node_config& node) {
  const auto place = split_endpoint(node.listen);
  if (node.is_head() && !(place && is_any_host(place->host)))
    return {"cluster.listen", "listen at an address that the other hosts see"};
  return {node_key(node.name, "host"), "give the host by an address that the other hosts see"};
}

void check_reachable(const cluster_config& config) {
  const auto other = [&](const node_config& node) {
    return std::find_if(config.nodes.begin(), config.nodes.end(),
                        [&](const auto& each) { return !on_one_host(each.host, node.host); });
  };
  for (const auto& node : config.nodes) {
    const auto remote = other(node);
    if (remote == config.nodes.end() || is_reachable(node)) continue;
    const auto [key, remedy] = way_to_reach(node);
    refuse_at(config, key, "{} listens at {}, where {} on {} cannot reach it: {}", node.name, node.listen, remote->name,
              remote->host, remedy);
  }
}

void check_shared_ports(const cluster_config& config) {
  std::map<std::string, std::string> taken;
  const auto take = [&](const std::string& host, const host_port& place, const std::string& who,
                        const std::string& at) {
    if (place.port == 0) return;
    const auto [old, is_new] = taken.emplace(fmt::format("{}:{}", host, place.port), who);
    if (!is_new)
      refuse_at(config, at, "{} listens at port {} of {}, and so does {}: use another port", who, place.port, host,
                old->second);
  };
  for (const auto& node : config.nodes)
    if (const auto place = split_endpoint(node.listen))
      take(plain_host(node.host), *place, node.name, node_key(node.name, "listen"));
  if (const auto place = split_host_port(config.http))
    take(plain_host(config.head().host), *place, "http", "cluster.http");
}

}  // namespace

void check_addresses(const cluster_config& config) {
  check_head_port(config);
  check_named(config, "cluster.listen", config.listen);
  check_open(config, "cluster.listen", config.listen);
  check_http(config);
  for (const auto& node : config.nodes) check_listen(config, node);
  check_reachable(config);
  check_shared_ports(config);
}

}  // namespace troupe::detail
