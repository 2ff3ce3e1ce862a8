#include "cli/cluster/export_adapter.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/adapters/adapter_files.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct exported {
  std::string version, sha256;
  std::vector<adapter_file_info> files;
};

/// The names come over the wire, so only those that an adapter's files can have are accepted.
exported files_of(const nlohmann::ordered_json& said) {
  exported all{said.value("adapter", ""), said.value("sha256", ""), {}};
  for (const auto& each : said.at("files")) {
    adapter_file_info file{each.value("name", ""), each.value("bytes", std::uint64_t{0})};
    if (std::find(adapter_file_names.begin(), adapter_file_names.end(), file.name) == adapter_file_names.end())
      throw std::runtime_error("the cluster names a file that no adapter has");
    all.files.push_back(std::move(file));
  }
  return all;
}

void refuse_existing(const fs::path& folder, const exported& what) {
  for (const auto& file : what.files)
    if (path_exists(folder / file.name))
      refuse("{}: is there already: choose another folder", (folder / file.name).string());
  make_chosen_folder(folder);
}

/// Files on their way into a folder. What has not arrived as a whole is removed with this object.
class arriving_files {
 public:
  explicit arriving_files(fs::path folder) : folder_(std::move(folder)) {}
  ~arriving_files() {
    std::error_code ignored;
    for (const std::string& name : names_) fs::remove(part_of(name), ignored);
  }
  arriving_files(const arriving_files&) = delete;
  arriving_files& operator=(const arriving_files&) = delete;

  file_descriptor make(const std::string& name) {
    file_descriptor made = make_new_file(part_of(name));
    names_.push_back(name);
    return made;
  }
  fs::path part_of(const std::string& name) const { return folder_ / (name + ".part"); }
  void finish() {
    for (const std::string& name : names_) fs::rename(part_of(name), folder_ / name);
    names_.clear();
  }

 private:
  fs::path folder_;
  std::vector<std::string> names_;
};

}  // namespace

std::string export_adapter(cluster_client& cluster, const std::string& name, const fs::path& folder) {
  const exported what = files_of(cluster.command("adapters.files", {{"name", name}}));
  refuse_existing(folder, what);
  const interrupt_guard guard;
  progress bar("exporting " + what.version);
  arriving_files arriving(folder);
  sha256 digest;
  std::int64_t done = 0, total = 0;
  for (const auto& file : what.files) total += static_cast<std::int64_t>(file.bytes);
  for (const auto& file : what.files) {
    const fs::path part = arriving.part_of(file.name);
    file_descriptor out = arriving.make(file.name);
    begin_adapter_file(digest, file.name, file.bytes);
    cluster.fetch(what.sha256, file, [&](std::span<const std::byte> piece) {
      digest.add(piece);
      if (!write_all(out.number(), {reinterpret_cast<const char*>(piece.data()), piece.size()}))
        fail_to_write(part, errno);
      bar.update(done += static_cast<std::int64_t>(piece.size()), total);
    });
    if (!out.close()) fail_to_write(part, errno);
  }
  if (digest.finish() != what.sha256) throw std::runtime_error(what.version + ": came damaged: export it again");
  arriving.finish();
  return what.version;
}

}  // namespace troupe
