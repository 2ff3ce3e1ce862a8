#include "transport/zmq/curve.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <span>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t printed_key = 40;
constexpr std::size_t longest_file = 4096;

void make_key_folder(const fs::path& folder) {
  try {
    make_private_folder(folder);
  } catch (const write_failure& fault) {
    refuse("{}", fault.what());
  }
}

/// For clients' public keys. The cluster, whose cluster.key lies beside it, must see what is in there, whoever makes
/// it.
void make_clients_folder(const fs::path& folder) {
  const fs::path clients = folder / "clients";
  if (is_folder(clients)) return;
  make_key_folder(clients);
  const file_descriptor opened(::open(clients.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened.is_open()) fail_to_write(clients, errno);
  const fs::path cluster = folder / "cluster.key";
  try {
    give_to_owner_of(std::span(&cluster, 1), opened, clients);
  } catch (const write_failure&) {
    ::rmdir(clients.c_str());  // the next attempt would leave it as it is
    throw;
  }
}

void refuse_existing(const fs::path& file) {
  std::error_code fault;
  if (fs::symlink_status(file, fault).type() != fs::file_type::not_found)
    refuse("{}: is there already, and keys are never overwritten: take it away or choose another folder",
           file.string());
}

/// New, and as private as it shall be from the first moment; half of it would be in the way of the next attempt.
void write_new(const fs::path& file, std::string_view text, readable_by whom) {
  const ::mode_t mode = whom == readable_by::owner ? 0600 : 0644;
  const file_descriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!opened.is_open() && errno == EEXIST) refuse_existing(file);
  if (!opened.is_open()) fail_to_write(file, errno);
  const bool is_shown = whom == readable_by::owner || ::fchmod(opened.number(), mode) == 0;  // whatever the umask
  if (is_shown && write_all(opened.number(), text) && ::fsync(opened.number()) == 0) return;
  const int fault = errno;
  ::unlink(file.c_str());
  fail_to_write(file, fault);
}

/// Files of which either all are there in the end or none.
class new_files {
 public:
  new_files() = default;
  ~new_files() {
    for (const fs::path& file : written_) ::unlink(file.c_str());
  }
  new_files(const new_files&) = delete;
  new_files& operator=(const new_files&) = delete;

  void write(const fs::path& file, std::string_view text, readable_by whom) {
    write_new(file, text, whom);
    written_.push_back(file);
  }
  void keep() { written_.clear(); }

 private:
  std::vector<fs::path> written_;
};

std::string text_of(const curve_pair& pair, const std::string& cluster) {
  return fmt::format(
      "# A key of a troupe cluster. Whoever has this file may use the cluster.\npublic {}\nsecret {}\ncluster {}\n",
      pair.public_key, pair.secret_key, cluster);
}

[[noreturn]] void refuse_unreadable(const fs::path& file, std::string_view why) {
  refuse(
      "{}: cannot be read: {}: the user who runs this must be able to: see whose it is, its permissions and its "
      "folder's",
      file.string(), why);
}

std::string read_small(const fs::path& file) {
  if (is_folder(file)) refuse("{}: is a folder: name a key file, such as client.key in it", file.string());
  std::error_code fault;
  const bool is_there = fs::is_regular_file(file, fault);
  if (fault == std::errc::permission_denied) refuse_unreadable(file, fault.message());
  if (!is_there) refuse("{}: no such key file: copy it, or make the cluster's keys by `troupe keygen`", file.string());
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_unreadable(file, std::strerror(errno));
  std::string text(longest_file + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(to_size(in.gcount()));
  if (text.size() > longest_file) refuse("{}: too long for a key file", file.string());
  return text;
}

/// Lines of `name value`; each of `names` once, and nothing else.
std::map<std::string, std::string> read_fields(const fs::path& file, const std::vector<std::string>& names) {
  std::map<std::string, std::string> fields;
  const std::string text = read_small(file);
  for (std::size_t at = 0, number = 1; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.empty() || line.front() == '#') continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string name = line.substr(0, space), value = line.substr(std::min(space + 1, line.size()));
    if (std::find(names.begin(), names.end(), name) == names.end() || !raw_key(value) ||
        !fields.emplace(name, value).second)
      refuse("{}:{}: not a line of a key file: `{} KEY` with a key of {} characters, once, is expected", file.string(),
             number, fmt::join(names, "|"), printed_key);
  }
  for (const auto& name : names)
    if (!fields.contains(name)) refuse("{}: broken: it has no line `{} KEY`", file.string(), name);
  return fields;
}

void refuse_shared(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && (status.st_mode & 077) != 0)
    refuse("{}: others can read this secret key: type chmod 600 {}", file.string(), file.string());
}

curve_keys read_private(const fs::path& file) {
  const auto fields = read_fields(file, {"public", "secret", "cluster"});
  refuse_shared(file);
  std::array<char, printed_key + 1> derived{};
  if (::zmq_curve_public(derived.data(), fields.at("secret").c_str()) != 0 || fields.at("public") != derived.data())
    refuse("{}: broken: the public key does not belong to the secret one", file.string());
  return {.own = {.public_key = fields.at("public"), .secret_key = fields.at("secret")},
          .cluster_public_key = fields.at("cluster")};
}

std::vector<fs::path> client_files(const fs::path& folder) {
  std::vector<fs::path> files = entries_of(folder);
  std::erase_if(files, [](const fs::path& file) { return file.extension() != ".pub"; });
  return files;
}

std::string read_public(const fs::path& file) {
  return read_fields(file, {"public"}).at("public");
}

void check_name(const std::string& name) {
  if (!is_short_word(name) || name == "cluster")
    refuse("{}: not a name for a client's key: letters, digits, - and _ make one, at most 64; `cluster` is taken",
           name);
}

/// NAME.key for the person, clients/NAME.pub for the nodes.
void write_client(const fs::path& folder, const std::string& name, const std::string& cluster, new_files& files) {
  const fs::path key = folder / (name + ".key"), known = folder / "clients" / (name + ".pub");
  refuse_existing(key);
  refuse_existing(known);
  make_clients_folder(folder);
  const curve_pair pair = make_curve_pair();
  files.write(key, text_of(pair, cluster), readable_by::owner);
  // It is no secret, and the cluster's user reads it also where root has made it.
  files.write(known, fmt::format("public {}\n", pair.public_key), readable_by::everyone);
}

}  // namespace

curve_pair make_curve_pair() {
  std::array<char, printed_key + 1> public_key{}, secret_key{};
  if (::zmq_curve_keypair(public_key.data(), secret_key.data()) != 0)
    refuse("this libzmq was built without CURVE, so there are no keys");
  return {public_key.data(), secret_key.data()};
}

std::optional<std::string> raw_key(const std::string& printed) {
  std::array<std::uint8_t, 32> raw{};
  if (printed.size() != printed_key || printed.find('\0') != std::string::npos ||
      ::zmq_z85_decode(raw.data(), printed.c_str()) == nullptr)
    return std::nullopt;
  return std::string(reinterpret_cast<const char*>(raw.data()), raw.size());
}

void write_keys(const std::filesystem::path& folder) {
  make_key_folder(folder);
  refuse_existing(folder / "cluster.key");
  refuse_existing(folder / "client.key");
  refuse_existing(folder / "clients" / "client.pub");
  const curve_pair pair = make_curve_pair();
  new_files files;
  files.write(folder / "cluster.key", text_of(pair, pair.public_key), readable_by::owner);
  write_client(folder, "client", pair.public_key, files);
  files.keep();
}

void add_client_key(const std::filesystem::path& folder, const std::string& name) {
  check_name(name);
  new_files files;
  write_client(folder, name, read_private(folder / "cluster.key").cluster_public_key, files);
  files.keep();
}

curve_keys read_cluster_keys(const std::filesystem::path& folder) {
  curve_keys keys = read_private(folder / "cluster.key");
  if (keys.own.public_key != keys.cluster_public_key)
    refuse("{}: a client's key, not the cluster's", (folder / "cluster.key").string());
  keys.allowed.push_back(keys.own.public_key);
  keys.clients = folder / "clients";
  std::error_code fault;
  const fs::directory_iterator listed(keys.clients, fault);
  if (fault && fault != std::errc::no_such_file_or_directory) refuse_unreadable(keys.clients, fault.message());
  for (const auto& file : client_files(keys.clients)) read_public(file);
  return keys;
}

std::vector<std::string> read_clients(const std::filesystem::path& folder) {
  std::vector<std::string> keys;
  for (const auto& file : client_files(folder)) {
    try {
      keys.push_back(read_public(file));
    } catch (const input_error&) {  // half written
    }
  }
  return keys;
}

curve_keys read_client_key(const std::filesystem::path& file) {
  return read_private(file);
}

}  // namespace troupe
