// Names of adapters and their immutable versions: `pricing@3`.
//
// Goals
// - A version's number is never given again, neither the cluster-wide one nor the ordinal behind the `@`.
// - A name points at one version, which answers new requests. It flips only to versions that are ready.
// - Bounded: the newest versions of each name stay, and the versions that were unloaded or failed last. The rest is
//   forgotten when nobody uses it any more.
// - Decisions only. Every change is noted; the owner writes the notes into the journal before acting on them.
// Non-goals: files, bytes, workers.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/model_ids.hpp"
#include "base/result.hpp"

namespace troupe {

enum class adapter_state : std::uint8_t { loading, ready, failed, unloaded };
std::string_view name_of(adapter_state state);

/// What is to be published.
struct adapter_spec {
  std::string name;
  std::string sha256;  ///< of its files
  std::uint64_t bytes = 0;
  std::uint32_t rank = 0;
  model_id base;  ///< the base that it was last found to fit
};

struct adapter_entry {
  adapter_version version;
  std::uint32_t ordinal = 0;  ///< counts a name's versions from 1
  adapter_spec spec;
  adapter_state state = adapter_state::loading;
  std::string error = {};  ///< why it failed

  std::string full_name() const;  ///< "pricing@3"
};

struct adapter_pointer {
  std::string name;
  std::uint32_t current = 0;  ///< ordinal that answers; 0: none
  std::uint32_t newest = 0;   ///< the highest that became current by getting ready; an older one that is late does not
  std::uint32_t next = 1;     ///< ordinal of the next version
};

/// All of a catalogue, or what changed in it.
struct catalogue_records {
  std::vector<adapter_entry> entries;
  std::vector<adapter_pointer> pointers;
  std::uint32_t next_version = 1;
  std::vector<adapter_version> forgotten = {};  ///< versions that are gone, even if `entries` has them

  bool empty() const { return entries.empty() && pointers.empty() && forgotten.empty(); }
};

struct catalogue_error {
  enum class reason : std::uint8_t { bad_name, bad_spec, other_base, unknown, not_ready, is_current, full };
  reason why = reason::unknown;
  std::string text;  ///< one line: cause and remedy
};

/// Letters, digits, '.', '_' and '-', 1 to 64 of them, beginning with a letter or digit, without "..".
bool is_adapter_name(std::string_view name);
/// The same for people.
constexpr std::string_view adapter_name_rule =
    "take 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit, without \"..\"";
/// What requests call the bare model: "base", its name, or the file NAME.gguf that it is in.
std::vector<std::string> names_of_base(std::string_view name);
/// Also the first piece of such a file (gguf_name.hpp).
bool is_base_name(std::string_view text, std::string_view name);
/// 64 hexadecimal digits, lower case.
bool is_sha256(std::string_view text);

class adapter_catalogue {
 public:
  struct options {
    std::string base_name;               ///< how requests call the bare model; "base" is always understood
    model_id base;                       ///< the base that adapters must fit; 0: any
    std::size_t max_versions = 1 << 16;  ///< loading or ready
    std::size_t kept_earlier = 16;       ///< versions of a name that stay for rollbacks when the next one comes
    std::size_t kept_unloaded = 16;      ///< versions, unloaded or failed, that can be loaded again
  };

  explicit adapter_catalogue(options chosen, catalogue_records saved = {});

  /// Why no version can have this name.
  std::optional<catalogue_error> check_name(std::string_view name) const;
  /// Makes a new version, which is loading. If the newest version of the name has the same contents (and has not failed
  /// and was not unloaded), it returns that one, so that a publisher may repeat itself. Unloads the name's versions
  /// before its newest `kept_earlier`, except for the one that answers.
  result<adapter_entry, catalogue_error> publish(adapter_spec spec);
  /// The version can answer. Returns whether its name points at it now: it does unless a newer one did before.
  bool set_ready(adapter_version version);
  void set_failed(adapter_version version, std::string why);
  /// A version that was published for another base fits this one as well, beside which it has so many bytes.
  void set_fits(adapter_version version, std::uint64_t bytes) {
    adapter_spec& spec = change(version).spec;
    spec.base = options_.base;
    spec.bytes = bytes;
  }

  /// "name", "name@2", "base:name", "base:name@2", or the base itself: version 0. `base` is a name of the base.
  result<adapter_version, catalogue_error> resolve(std::string_view text) const;
  /// The version that a name points at; nullptr if there is none.
  const adapter_entry* current(std::string_view name) const;
  /// The version of a name that was made last; nullptr if there is none.
  const adapter_entry* newest(std::string_view name) const { return find(reference{name, {}}); }
  const adapter_entry* find(adapter_version version) const;

  using version_test = std::function<bool(adapter_version)>;
  /// Makes the name point at the newest ready version before the current one, or at the given one. Returns that
  /// version. `can_answer` is false of a version that is ready but whose files are gone, or do not fit the base.
  result<adapter_entry, catalogue_error> rollback(
      std::string_view name, std::optional<std::uint32_t> ordinal = {},
      const version_test& can_answer = [](adapter_version) { return true; });
  /// Unloads "name" (all versions) or "name@2" (which must not be current): new requests do not find them. Returns
  /// what was unloaded.
  result<std::vector<adapter_version>, catalogue_error> unload(std::string_view text);
  /// An unloaded or failed version, "name" (the newest) or "name@2", is loading again.
  result<adapter_entry, catalogue_error> load(std::string_view text);
  /// Forgets the versions that were unloaded or failed before the last `kept_unloaded` of them and are not in use.
  /// Returns them.
  std::vector<adapter_entry> forget_unloaded(const std::function<bool(adapter_version)>& is_used);

  /// All versions by name and ordinal: at most `most` of those after "name@2".
  std::vector<adapter_entry> list(std::string_view after = {}, std::size_t most = SIZE_MAX) const;
  /// Names that point at a version, but are names of the base now: those that a model has got since they were given.
  std::vector<std::string> hidden_by_base() const;
  /// The versions that names point at, by name; at most so many.
  std::vector<adapter_entry> answering(std::size_t most) const;
  std::size_t size() const { return entries_.size(); }
  bool is_current(const adapter_entry& entry) const;
  /// What changed since the last call.
  catalogue_records take_changes();

 private:
  struct named {
    adapter_pointer pointer;
    std::map<std::uint32_t, adapter_version> versions;  ///< by ordinal
  };
  struct reference {
    std::string_view name;
    std::optional<std::uint32_t> ordinal;
  };

  std::optional<catalogue_error> check(const adapter_spec& spec) const;
  result<reference, catalogue_error> parse(std::string_view text) const;
  bool is_base(std::string_view text) const { return is_base_name(text, options_.base_name); }
  const adapter_entry* find(const reference& wanted) const;
  const adapter_entry* newest_of(const named& name) const;
  const adapter_entry* ready_before_current(const named& name, const version_test& can_answer) const;
  adapter_entry& change(adapter_version version);
  named& change(const std::string& name);
  adapter_entry& set_state(adapter_version version, adapter_state state);
  void unload_superseded(const named& name);
  void forget(const adapter_entry& entry);
  void point(named& name, std::uint32_t ordinal);

  options options_;
  std::map<adapter_version, adapter_entry> entries_;
  std::map<std::string, named, std::less<>> names_;
  std::deque<adapter_version> unloaded_;  ///< or failed; the latest one last
  std::uint32_t next_version_ = 1;
  std::set<adapter_version> changed_entries_;
  std::vector<adapter_version> forgotten_;
  std::set<std::string> changed_names_;
};

}  // namespace troupe
