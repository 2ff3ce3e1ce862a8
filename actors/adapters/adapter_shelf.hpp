// The cluster's adapters as files and versions, without an actor: the catalogue decides, this class moves the bytes.
//
// Goals: what is published is a copy that nobody changes, named by its contents; what cannot run with the model is
// refused when it comes. Everything throws input_error with one line for whoever asked.
// Non-goals: writing the catalogue down (take_changes() is the owner's to save), workers.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "actors/adapters/adapter_directory.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

class adapter_shelf {
 public:
  struct options {
    std::filesystem::path store;   ///< STORE/<sha256>/ holds an adapter's files
    std::filesystem::path source;  ///< where folders named like adapters are looked for
    model_config model;
    model_id base;
    std::string base_name;                          ///< how requests may call the bare model, beside "base"
    std::uint64_t memory = std::uint64_t{1} << 30;  ///< of each worker, for adapters
  };

  /// Versions that were saved are there again, where their files are and fit the model.
  adapter_shelf(options chosen, catalogue_records saved);

  /// A PEFT folder that is here and right, and may become a version. Its pieces can be read from now on.
  struct taken {
    std::string name, sha256;
    std::uint64_t bytes = 0;  ///< in memory
    std::uint32_t rank = 0;
    std::vector<adapter_file_info> files;
    bool is_new = true;  ///< no version has the same contents
  };
  taken take(const std::string& name, const std::filesystem::path& folder);
  /// A new version, ready; or the newest one where the contents are the same. Its name answers as it from now on, also
  /// where it had been rolled back.
  adapter_entry publish(const taken& what);
  adapter_entry publish(const std::string& name, const std::filesystem::path& folder) {
    return publish(take(name, folder));
  }
  /// Where `load` would look for a folder of that name, if there is one.
  std::optional<std::filesystem::path> source_of(const std::string& name) const;
  /// "name": the folder of that name in `source`, published, but for contents that were rolled back: a start does not
  /// bring them back. Without a folder a version that was unloaded. "name@2": that one again.
  adapter_entry load(const std::string& text);
  /// For a request that names an adapter nobody published.
  adapter_entry find_or_publish(const std::string& name);
  adapter_entry rollback(const std::string& name, std::optional<std::uint32_t> ordinal);
  std::vector<adapter_entry> unload(const std::string& text);
  /// Of "name" or "name@2", ready.
  adapter_details details_of(const std::string& text) const;

  catalogue_records take_changes() { return catalogue_.take_changes(); }
  adapter_directory::snapshot snapshot() const;
  std::uint64_t times_files_came() const { return times_files_came_; }  ///< of versions
  /// What was unloaded long ago and nobody uses is no version any more.
  void forget_unloaded(const std::function<bool(adapter_version)>& is_used);
  /// Removes folders whose last version was forgotten, or that did not become one: when the journal knows.
  void remove_unused_files();
  /// A JSON list, one object for each version: a page, of those behind "name@2".
  std::string list_json(std::string_view after = {}) const;
  /// For the status, which is one message, however many there are.
  struct summary {
    std::string list;        ///< JSON, of versions that answer
    std::size_t others = 0;  ///< that are not in it
  };
  summary shown() const;
  /// At most `largest_piece` bytes of a file, or why not.
  adapter_piece read_piece(const want_piece& wanted) const;

  static constexpr std::size_t largest_piece = 4 << 20;
  static constexpr std::size_t page_versions = 1000;

 private:
  std::filesystem::path folder_of(const std::string& sha256) const { return options_.store / sha256; }
  taken take_in(const std::filesystem::path& folder);
  adapter_entry add(const taken& what);
  adapter_entry make_ready(const adapter_entry& entry);
  std::string json_of(const std::vector<adapter_entry>& entries) const;
  void check_fits(std::uint64_t bytes, const std::string& what) const;
  /// What keeps it from being used; empty: nothing does, and it is in `details_`.
  const std::string& note_files(const adapter_entry& entry);
  std::string take_files(const adapter_entry& entry);
  const adapter_entry* newest(std::string_view name, const std::vector<adapter_entry>& all) const;

  options options_;
  adapter_catalogue catalogue_;
  std::map<adapter_version, adapter_details> details_;  ///< of all versions whose files are there
  std::map<adapter_version, std::string> faults_;       ///< why a version cannot be used; empty: it can
  std::multiset<std::string> taken_;                    ///< digests of what may become a version
  std::set<std::string> perhaps_unused_;                ///< digests
  std::uint64_t incoming_ = 0, times_files_came_ = 0;
};

}  // namespace troupe
