#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_id.hpp"
#include "cluster/config/config_setting.hpp"

namespace troupe::detail {

/// One value of the file on its way into a struct: every getter checks and refuses with the value's place.
class config_value {
 public:
  /// `key`: how errors call it. Everything is borrowed.
  config_value(const setting& content, std::string_view key, const cluster_config& into)
      : content_(content), key_(key), into_(into) {}

  [[noreturn]] void refuse(std::string_view problem) const;

  std::string text() const;  ///< not empty
  bool truth() const;
  int number(int least, int most) const;
  double share(double most) const;  ///< from 0 to `most`; may be written as a whole number
  std::uint64_t bytes() const;      ///< "4GiB", "512 MiB" or a number
  std::vector<std::string> texts() const;
  std::string one_of(std::initializer_list<std::string_view> allowed) const;
  std::filesystem::path path() const;                ///< absolute; relative ones start from the file's folder
  std::filesystem::path absolute_path() const;       ///< on another host
  std::vector<preloaded_adapter> preloaded() const;  ///< "NAME", or "NAME=FOLDER"
  std::string name() const;                          ///< fit to be a file's name and a word of a command
  std::string model_name() const;                    ///< the same, without what requests may put before it
  std::string host() const;
  std::string ssh_target() const;  ///< host or user@host
  layer_range layers() const;
  device_id device() const;
  std::set<node_role> roles() const;
  std::string endpoint() const;    ///< tcp://host:port or ipc:///path
  std::string http_place() const;  ///< host:port, or empty
  std::vector<std::string> origins() const;

 private:
  std::filesystem::path path_of(std::string_view chosen) const;
  [[noreturn]] void refuse_type(std::string_view wanted) const;
  const std::string& as_text(std::string_view wanted) const;

  const setting& content_;
  std::string_view key_;
  const cluster_config& into_;
};

/// Throws config_error: `label:line:column: problem`.
[[noreturn]] void refuse_place(const cluster_config& config, config_place at, std::string_view problem,
                               std::string_view key = {});

}  // namespace troupe::detail
