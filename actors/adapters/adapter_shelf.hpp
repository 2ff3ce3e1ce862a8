// The cluster's adapters as files and versions. No actor: the catalogue decides, this class moves the bytes.
//
// Goals: a published version is a copy that nobody changes, named by its contents; an adapter that cannot run with the
// model is refused when it arrives. Everything throws input_error with one line for the user, or write_failure.
// Non-goals: saving the catalogue (the owner saves take_changes(), and says what became of it), workers.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/adapters/adapter_directory.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

class adapter_shelf {
 public:
  struct options {
    std::filesystem::path store;   ///< STORE/<sha256>/ holds an adapter's files
    std::filesystem::path source;  ///< where adapters are looked for by the name of their folder
    model_config model;
    model_id base;
    std::string base_name = {};                     ///< a name for the bare model in requests, beside "base"
    std::uint64_t memory = std::uint64_t{1} << 30;  ///< of each worker, for adapters
    std::string quantization = {};                  ///< of the base that is loaded
  };

  /// Saved versions are ready again if their files exist and fit the model.
  adapter_shelf(options chosen, catalogue_records saved);

  /// An adapter (a folder as PEFT writes it, or a GGUF file) that was copied and checked, and may become a version. Its
  /// pieces can be read from now on.
  struct candidate {
    std::string name, sha256;
    std::uint64_t bytes = 0;  ///< in memory
    std::uint32_t rank = 0;
    std::vector<adapter_file_info> files;
    bool is_new = true;  ///< whether no version has the same contents
  };
  candidate copy_in(const std::string& name, const std::filesystem::path& source);
  /// Makes a new version that is ready; or takes the newest one, if its contents are the same. The name means this
  /// version from now on, even if it had been rolled back.
  adapter_entry publish(const candidate& copy);
  adapter_entry publish(const std::string& name, const std::filesystem::path& source) {
    return publish(copy_in(name, source));
  }
  /// It becomes no version: its files go with the next clearing up, unless others have them.
  void give_up(const candidate& copy);
  /// The folder or file of that name that `load` would take, if there is one.
  std::optional<std::filesystem::path> source_of(const std::string& name) const;
  /// Loads a version that was unloaded: "name", the newest one, or "name@2".
  adapter_entry load(const std::string& text);
  /// For a head that starts: "name" publishes the folder or file of that name in `source` if the name never had its
  /// contents. If it had them, whatever has become of them since (others answer, or they were unloaded) stays as it is.
  /// So do all versions where there is no such folder or file; then it throws input_error unless there is one.
  /// "name@2" loads that version again.
  void preload(const std::string& text);
  /// The same with a folder or file anywhere.
  void preload(const std::string& name, const std::filesystem::path& source);
  /// For a request that names an adapter which is not published.
  adapter_entry find_or_publish(const std::string& name);
  adapter_entry rollback(const std::string& name, std::optional<std::uint32_t> ordinal);
  std::vector<adapter_entry> unload(const std::string& text);
  /// Details of a ready version, "name" or "name@2".
  adapter_details details_of(const std::string& text) const;

  /// What changed since the last call. Next comes keep_changes() or drop_changes(), which also takes back what has
  /// changed since this call.
  catalogue_records take_changes();
  void keep_changes();
  void drop_changes();
  adapter_directory::snapshot snapshot() const;
  /// Whether files of a version that had none were found since the last call.
  bool take_files_came_back() { return std::exchange(files_came_back_, false); }
  /// Forgets versions that were unloaded long ago and that nobody uses.
  void forget_unloaded(const std::function<bool(adapter_version)>& is_used);
  /// Removes folders whose last version was forgotten, and those that never became one. To be called when the journal
  /// has it.
  void remove_unused_files();
  /// A page of all versions, those after "name@2": a JSON list with an object for each.
  std::string list_json(std::string_view after = {}) const;
  /// The part of the list that the status shows, which is one message however many versions there are.
  struct summary {
    std::string list;        ///< JSON list of versions that answer
    std::size_t others = 0;  ///< how many versions it leaves out
  };
  summary shown() const;
  /// Names of adapters that have become names of the base, which answers to them.
  std::vector<std::string> hidden_by_base() const { return catalogue_.hidden_by_base(); }
  /// A piece of a file, or why not.
  adapter_piece read_piece(const want_piece& wanted) const;

  static constexpr std::size_t page_versions = 1000;

 private:
  std::filesystem::path folder_of(const std::string& sha256) const { return options_.store / sha256; }
  candidate checked_copy(const std::filesystem::path& source);
  adapter_entry add_version(const candidate& copy);
  std::vector<adapter_entry> versions_with(const candidate& copy) const;
  adapter_entry publish_unasked(const std::string& name, const std::filesystem::path& source);
  adapter_entry make_ready(const adapter_entry& entry);
  std::string json_of(const std::vector<adapter_entry>& entries) const;
  void check_fits(std::uint64_t bytes, const std::string& whose) const;
  /// Takes up a version's files and notes in `faults_` what comes of it, which it returns.
  const std::string& note_files(const adapter_entry& entry);
  /// Looks for a version's files and makes them the head's own: then the version is in `details_`. Returns why it
  /// cannot answer; empty if it can.
  std::string take_up_files(const adapter_entry& entry);
  void look_for_unused_folders();

  options options_;
  adapter_catalogue catalogue_;
  adapter_catalogue saved_;                             ///< the catalogue as it was last saved
  adapter_catalogue being_saved_;                       ///< as it was when its changes were last taken
  std::map<adapter_version, adapter_details> details_;  ///< of all versions whose files exist
  std::map<adapter_version, std::string> faults_;       ///< why a version cannot be used; empty: it can
  std::multiset<std::string> candidates_;               ///< digests of folders that may become versions
  std::set<std::string> perhaps_unused_;                ///< digests of folders
  std::set<adapter_version> preloaded_;                 ///< or of the same contents: the next start must know them
  std::uint64_t incoming_ = 0;
  bool files_came_back_ = false;
};

}  // namespace troupe
