#include "actors/http/access/api_keys.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/entropy.hpp"
#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/sha256.hpp"
#include "base/whole_file.hpp"
#include "model/engine/scheduling/sequence_request.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_file = 4 << 20;
constexpr int key_characters = 43;  // of 62 kinds, which makes 256 bits
/// In place of a revoked key's, until the file is written anew.
constexpr std::string_view struck_digest = "----------------------------------------------------------------";

std::string digest_of(std::string_view key) {
  return sha256().add(key).finish();
}

std::string random_key() {
  constexpr std::string_view characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  std::string key = "sk-troupe-";
  // Of so large numbers the rest is even enough.
  for (int i = 0; i < key_characters; ++i) key += characters[entropy() % characters.size()];
  return key;
}

void write_keys_file(const fs::path& file, const std::vector<api_key>& keys) {
  auto list = nlohmann::ordered_json::array();
  for (const api_key& each : keys) {
    nlohmann::ordered_json entry{
        {"name", each.name}, {"sha256", each.sha256}, {"shown", each.shown}, {"created", each.created}};
    for (const auto& [name, limit] : rate_limit_fields)
      if (each.limits.*limit > 0) entry[name] = each.limits.*limit;
    if (each.weight != 1) entry["weight"] = each.weight;
    if (each.is_admin) entry["admin"] = true;
    list.push_back(std::move(entry));
  }
  const std::string text = nlohmann::ordered_json{{"keys", list}}.dump(2) + "\n";
  if (text.size() > largest_file)
    refuse("{}: would have {} bytes, more than the {} that are read: revoke some keys first", file.string(),
           text.size(), largest_file);
  // Its cluster must read what root writes. The folder itself says the least: that of a volume is root's.
  const std::array owned_like{file, file.parent_path() / "journal.db", file.parent_path()};
  write_file(file, text, readable_by::owner, owned_like);
}

/// Makes a key's digest one that no key has. The file keeps its length, and can be read at any time: unlike a new file,
/// this needs no room on most disks. Returns whether it is done.
bool strike_digest(const fs::path& file, const std::string& sha256) {
  const std::size_t at = detail::read_text(file, largest_file).find(sha256);
  if (at == std::string::npos || sha256.size() != struck_digest.size()) return false;
  const file_descriptor opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  const auto done = ::pwrite(opened.number(), struck_digest.data(), struck_digest.size(), static_cast<off_t>(at));
  return done == static_cast<ssize_t>(struck_digest.size()) && ::fsync(opened.number()) == 0;
}

/// Of two commands at once, the second changes what the first has written.
file_descriptor locked_folder(const fs::path& folder) {
  make_private_folder(folder);
  file_descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  (void)::flock(opened.number(), LOCK_EX);  // a file system without locks gives none
  return opened;
}

api_key read_key(const detail::json_fields<nlohmann::json>& fields) {
  api_key key{.name = fields.text("name").value_or(""),
              .sha256 = fields.text("sha256").value_or(""),
              .shown = fields.text("shown").value_or(""),
              .created = fields.integer("created").value_or(0),
              .weight = fields.integer("weight").value_or(1),
              .is_admin = fields.boolean("admin").value_or(false)};
  for (const auto& [name, limit] : rate_limit_fields) {
    key.limits.*limit = fields.integer(name).value_or(0);
    if (key.limits.*limit < 0) refuse("{}: {} is negative: 0 is without a limit", fields.where(), name);
  }
  if (key.weight < 1 || key.weight > most_weight)
    refuse("{}: weight is {}: use 1 to {}", fields.where(), key.weight, most_weight);
  return key;
}

/// `where`: what errors call the text.
std::vector<api_key> keys_in(const std::string& text, const std::string& where) {
  const auto parsed = detail::parse_json(text, where);
  const auto list = parsed.find("keys");
  if (!parsed.is_object() || list == parsed.end() || !list->is_array()) refuse("{}: holds no keys", where);
  std::vector<api_key> keys;
  for (const auto& each : *list) keys.push_back(read_key(detail::json_fields(each, where)));
  return keys;
}

std::vector<api_key> present_keys(const fs::path& file) {
  return read_api_keys(file).value_or(std::vector<api_key>());
}

std::vector<api_key>::iterator find_key(std::vector<api_key>& keys, const std::string& name) {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const api_key& each) { return each.name == name; });
  if (found == keys.end()) refuse("key {}: there is none: see `troupe keys list`", name.substr(0, 64));
  return found;
}

bool is_good_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == '@';
  });
}

/// What a header carries as it is, and nobody guesses. The text itself is in no error.
void check_key_text(const std::string& name, std::string_view text) {
  constexpr std::size_t least = 16, most = 256;
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  if (!is_plain || text.size() < least || text.size() > most)
    refuse("key {}: a key's text has {} to {} letters, digits and signs, no blanks and one line: choose another", name,
           least, most);
}

/// By which people recognise it: never much of a short one.
std::string beginning_of(std::string_view text) {
  return std::string(text.substr(0, std::min<std::size_t>(14, text.size() / 3)));
}

}  // namespace

fs::path api_keys_file(const fs::path& state_dir) {
  return state_dir / "api_keys.json";
}

std::optional<std::vector<api_key>> read_api_keys(const fs::path& file) {
  std::error_code ignored;
  // A link that leads nowhere, or a folder that nobody may look into, is no reason to let everybody in.
  if (fs::symlink_status(file, ignored).type() == fs::file_type::not_found) return std::nullopt;
  const std::string text = detail::read_text(file, largest_file);
  try {
    std::vector<api_key> keys = keys_in(text, file.string());
    std::erase_if(keys, [](const api_key& each) { return each.sha256 == struck_digest; });
    return keys;
  } catch (const input_error& error) {
    refuse("{}: mend it, or put a copy from before in its place; without it all may use the API, unless need_keys",
           error.what());
  }
}

std::string add_api_key(const fs::path& file, api_key key, std::string text) {
  if (!is_good_name(key.name))
    refuse("key {}: a name has letters, digits and -_.@, 64 at most", key.name.substr(0, 64));
  if (text.empty()) text = random_key();
  check_key_text(key.name, text);
  key.sha256 = digest_of(text);
  key.shown = beginning_of(text);
  const file_descriptor lock = locked_folder(file.parent_path());
  auto keys = present_keys(file);
  for (const api_key& each : keys) {
    if (each.name == key.name) refuse("key {}: there is one of that name: revoke it or choose another", key.name);
    if (each.sha256 == key.sha256) refuse("key {}: {} has the same: revoke it first", key.name, each.name);
  }
  key.created = std::time(nullptr);
  keys.push_back(std::move(key));
  write_keys_file(file, keys);
  return text;
}

void limit_api_key(const fs::path& file, const std::string& name, const std::function<void(api_key&)>& change) {
  const file_descriptor lock = locked_folder(file.parent_path());
  auto keys = present_keys(file);
  change(*find_key(keys, name));
  write_keys_file(file, keys);
}

void revoke_api_key(const fs::path& file, const std::string& name) {
  const file_descriptor lock = locked_folder(file.parent_path());
  auto keys = present_keys(file);
  const auto found = find_key(keys, name);
  const std::string sha256 = found->sha256;
  keys.erase(found);
  try {
    write_keys_file(file, keys);
  } catch (const std::exception&) {  // a full disk, or a file written by hand that takes more room in our form
    if (!strike_digest(file, sha256)) throw;
  }
}

api_key_ring::file_stamp api_key_ring::stamp_now() const {
  struct stat status {};
  if (::stat(file_.c_str(), &status) != 0) return {};
  // What was written just now may be written again without a sign: times are no finer than some file systems' seconds.
  constexpr std::time_t settled = 3;
  if (std::time(nullptr) - status.st_mtim.tv_sec < settled) return {};
  return std::array<std::int64_t, 5>{static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino),
                                     status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

api_key_ring::api_key_ring(fs::path file, bool are_needed, std::function<void(const std::string&)> log,
                           duration between_looks)
    : file_(std::move(file)), are_needed_(are_needed), log_(std::move(log)), between_looks_(between_looks) {
  keys_ = read_api_keys(file_);
  looked_ = clock_.now();
}

bool api_key_ring::is_open() {
  const std::lock_guard lock(mutex_);
  look_again();
  return !keys_ && !is_broken_ && !are_needed_;
}

std::optional<api_key> api_key_ring::find(std::string_view key) {
  const std::lock_guard lock(mutex_);
  look_again();
  if (!keys_) return std::nullopt;
  const std::string digest = digest_of(key);
  for (const api_key& each : *keys_)
    if (each.sha256 == digest) return each;
  return std::nullopt;
}

void api_key_ring::look_again() {
  if (clock_.now() - looked_ < between_looks_) return;
  looked_ = clock_.now();
  const file_stamp stamp = stamp_now();
  if (stamp && stamp == read_) return;
  read_.reset();
  try {
    auto fresh = read_api_keys(file_);
    // If the file is gone, the keys that were read from it still count: otherwise anybody could get in.
    if (fresh || !keys_) keys_ = std::move(fresh);
    is_broken_ = false;
    read_ = stamp;
  } catch (const input_error& fault) {
    if (!is_broken_ && log_)
      log_(fmt::format("{}: until it can be read again, {}", fault.what(),
                       keys_ ? "the keys that were read before count, also those revoked since" : "nobody gets in"));
    is_broken_ = true;
  }
}

}  // namespace troupe
