#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A pair of CURVE keys in ZeroMQ's printable form (Z85, 40 characters each).
struct curve_pair {
  std::string public_key, secret_key;
};

/// What one process needs to encrypt: its own pair, the cluster's public key, and who may connect to it.
struct curve_keys {
  curve_pair own;
  std::string cluster_public_key;         ///< of every process of the cluster that listens
  std::vector<std::string> allowed = {};  ///< public keys that may connect; a process that listens needs some
  /// Folder of clients' public keys, which may connect as well, as it is at that moment. Empty: none may.
  std::filesystem::path clients = {};
};

curve_pair make_curve_pair();
/// The 32 bytes of a printed key; nothing where the text is none.
std::optional<std::string> raw_key(const std::string& printed);

/// `troupe keygen --out DIR`: cluster.key (for nodes: the pair they all listen and connect with) and client.key (for
/// people: a pair of its own and the cluster's public key). Secrets are readable by their owner alone; none is
/// overwritten.
void write_keys(const std::filesystem::path& folder);
/// One more client's key beside the others.
void add_client_key(const std::filesystem::path& folder, const std::string& name);
/// For a node that clients connect to: cluster.key and the folder's clients/. Refuses broken files in there, too.
curve_keys read_cluster_keys(const std::filesystem::path& folder);
/// Every *.pub in that folder that can be read now: others may be half written.
std::vector<std::string> read_clients(const std::filesystem::path& folder);
/// For a client: one .key file.
curve_keys read_client_key(const std::filesystem::path& file);

}  // namespace troupe
