#include "cluster/adapters/adapter_catalogue.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/gguf_name.hpp"
#include "base/number_in.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

using fault = catalogue_error::reason;

constexpr std::size_t max_error_bytes = 1024;

template <class... Args>
catalogue_error error(fault why, fmt::format_string<Args...> format, Args&&... args) {
  return {why, fmt::format(format, std::forward<Args>(args)...)};
}

/// A name from outside, short and without control characters.
std::string shown(std::string_view text) {
  std::string copy(text.substr(0, 80));
  std::replace_if(
      copy.begin(), copy.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return copy;
}

std::optional<std::uint32_t> ordinal_of(std::string_view digits) {
  const auto number = number_in<std::uint32_t>(digits);
  return number == 0u ? std::nullopt : number;
}

bool is_of_use(const adapter_entry& entry) {
  return entry.state == adapter_state::loading || entry.state == adapter_state::ready;
}

}  // namespace

std::string_view name_of(adapter_state state) {
  constexpr std::array<std::string_view, 4> names{"loading", "ready", "failed", "unloaded"};
  return names[to_size(state)];
}

std::string adapter_entry::full_name() const {
  return fmt::format("{}@{}", spec.name, ordinal);
}

bool is_adapter_name(std::string_view name) {
  return is_file_name(name) && name.find("..") == std::string_view::npos;
}

std::vector<std::string> names_of_base(std::string_view name) {
  std::vector<std::string> names{"base"};
  if (!name.empty()) names.insert(names.end(), {std::string(name), fmt::format("{}.gguf", name)});
  return names;
}

bool is_base_name(std::string_view text, std::string_view name) {
  return text == "base" || (!name.empty() && (text == name || name_without_gguf(text) == name));
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

adapter_catalogue::adapter_catalogue(options chosen, catalogue_records saved)
    : options_(std::move(chosen)), next_version_(std::max(saved.next_version, 1u)) {
  for (adapter_pointer& pointer : saved.pointers) {
    std::string name = pointer.name;
    names_[std::move(name)].pointer = std::move(pointer);
  }
  for (adapter_entry& entry : saved.entries) {
    named& name = names_[entry.spec.name];
    name.pointer.name = entry.spec.name;
    name.pointer.next = std::max(name.pointer.next, entry.ordinal + 1);
    name.versions[entry.ordinal] = entry.version;
    next_version_ = std::max(next_version_, entry.version.value + 1);
    if (!is_of_use(entry)) unloaded_.push_back(entry.version);
    entries_.insert_or_assign(entry.version, std::move(entry));
  }
}

result<adapter_entry, catalogue_error> adapter_catalogue::publish(adapter_spec spec) {
  if (const auto wrong = check(spec)) return *wrong;
  if (const auto known = names_.find(spec.name); known != names_.end()) {
    const adapter_entry* newest = newest_of(known->second);
    if (newest != nullptr && is_of_use(*newest) && newest->spec.sha256 == spec.sha256) return *newest;
    unload_superseded(known->second);
  }
  if (const std::size_t in_use = entries_.size() - unloaded_.size(); in_use >= options_.max_versions) {
    return error(fault::full,
                 "adapter {}: there are {} versions, as many as may be: make room with `troupe adapters unload NAME`",
                 spec.name, in_use);
  }
  named& name = change(spec.name);
  adapter_entry entry{.version = adapter_version(next_version_++),
                      .ordinal = name.pointer.next++,
                      .spec = std::move(spec),
                      .state = adapter_state::loading};
  name.versions[entry.ordinal] = entry.version;
  changed_entries_.insert(entry.version);
  return entries_.insert_or_assign(entry.version, std::move(entry)).first->second;
}

std::optional<catalogue_error> adapter_catalogue::check_name(std::string_view name) const {
  if (is_adapter_name(name) && !is_base(name)) return {};
  return error(fault::bad_name, "adapter name '{}': {}, and not the base's name", shown(name), adapter_name_rule);
}

std::optional<catalogue_error> adapter_catalogue::check(const adapter_spec& spec) const {
  if (auto bad_name = check_name(spec.name)) return bad_name;
  if (!is_sha256(spec.sha256)) return error(fault::bad_spec, "adapter {}: its sha256 has not 64 digits", spec.name);
  if (spec.rank == 0 || spec.rank > 4096) {
    return error(fault::bad_spec, "adapter {}: rank {} is not within 1 and 4096", spec.name, spec.rank);
  }
  if (options_.base != model_id{} && spec.base != options_.base) {
    return error(fault::other_base, "adapter {}: made for base {:016x}, the cluster runs {:016x}", spec.name,
                 spec.base.value, options_.base.value);
  }
  return {};
}

bool adapter_catalogue::set_ready(adapter_version version) {
  const auto found = entries_.find(version);
  if (found == entries_.end() || !is_of_use(found->second)) return false;
  if (found->second.state == adapter_state::ready) return is_current(found->second);
  adapter_entry& entry = change(version);
  entry.state = adapter_state::ready;
  named& name = names_.find(entry.spec.name)->second;
  const bool is_newer = entry.ordinal > name.pointer.newest;
  if (is_newer) name.pointer.newest = entry.ordinal;
  // A name without a current version, as after an unload, takes any version that gets ready.
  if (is_newer || name.pointer.current == 0) point(name, entry.ordinal);
  return is_current(entry);
}

void adapter_catalogue::set_failed(adapter_version version, std::string why) {
  const auto found = entries_.find(version);
  if (found == entries_.end() || found->second.state != adapter_state::loading) return;
  adapter_entry& entry = set_state(version, adapter_state::failed);
  entry.error = std::move(why);
  if (entry.error.size() > max_error_bytes) entry.error.resize(max_error_bytes);
}

result<adapter_catalogue::reference, catalogue_error> adapter_catalogue::parse(std::string_view text) const {
  const std::string_view whole = text;
  if (const auto colon = text.find(':'); colon != std::string_view::npos && is_base(text.substr(0, colon))) {
    text.remove_prefix(colon + 1);
  }
  reference wanted{text.substr(0, text.find('@')), {}};
  if (!is_adapter_name(wanted.name))
    return error(fault::bad_name, "'{}' names no adapter: {}", shown(whole), adapter_name_rule);
  if (wanted.name.size() == text.size()) return wanted;
  wanted.ordinal = ordinal_of(text.substr(wanted.name.size() + 1));
  if (!wanted.ordinal) return error(fault::bad_name, "'{}': behind '@' comes a version, such as 3", shown(whole));
  return wanted;
}

result<adapter_version, catalogue_error> adapter_catalogue::resolve(std::string_view text) const {
  if (is_base(text)) return adapter_version{};
  const auto wanted = parse(text);
  if (!wanted) return wanted.error();
  const adapter_entry* entry = wanted->ordinal ? find(*wanted) : current(wanted->name);
  if (entry != nullptr && entry->state == adapter_state::ready) return entry->version;
  if (entry != nullptr) return error(fault::not_ready, "adapter {}: is {}", entry->full_name(), name_of(entry->state));
  if (!wanted->ordinal && names_.contains(wanted->name)) {
    const adapter_entry* newest = find(*wanted);
    const bool is_unloaded = newest != nullptr && newest->state == adapter_state::unloaded;
    return error(fault::not_ready, "adapter {}: no version of it is ready{}", wanted->name,
                 is_unloaded ? fmt::format(": `troupe adapters load {}` takes it back", wanted->name) : "");
  }
  return error(fault::unknown, "adapter {}: there is none: see `troupe adapters list`, or /v1/models over HTTP",
               shown(text));
}

const adapter_entry* adapter_catalogue::find(const reference& wanted) const {
  const auto name = names_.find(wanted.name);
  if (name == names_.end()) return nullptr;
  if (!wanted.ordinal) return newest_of(name->second);
  const auto version = name->second.versions.find(*wanted.ordinal);
  return version == name->second.versions.end() ? nullptr : find(version->second);
}

const adapter_entry* adapter_catalogue::find(adapter_version version) const {
  const auto found = entries_.find(version);
  return found == entries_.end() ? nullptr : &found->second;
}

const adapter_entry* adapter_catalogue::newest_of(const named& name) const {
  return name.versions.empty() ? nullptr : find(name.versions.rbegin()->second);
}

const adapter_entry* adapter_catalogue::current(std::string_view name) const {
  const auto found = names_.find(name);
  if (found == names_.end() || found->second.pointer.current == 0) return nullptr;
  return find(reference{name, found->second.pointer.current});
}

const adapter_entry* adapter_catalogue::ready_before_current(const named& name, const version_test& can_answer) const {
  for (auto each = name.versions.rbegin(); each != name.versions.rend(); ++each) {
    const adapter_entry* entry = find(each->second);
    if (entry->ordinal < name.pointer.current && entry->state == adapter_state::ready && can_answer(each->second))
      return entry;
  }
  return nullptr;
}

result<adapter_entry, catalogue_error> adapter_catalogue::rollback(std::string_view name,
                                                                   std::optional<std::uint32_t> ordinal,
                                                                   const version_test& can_answer) {
  const auto found = names_.find(name);
  if (found == names_.end()) return error(fault::unknown, "adapter {}: there is none", shown(name));
  named& all = found->second;
  const adapter_entry* target = ordinal ? find(reference{name, ordinal}) : ready_before_current(all, can_answer);
  if (target == nullptr && ordinal) return error(fault::unknown, "adapter {}@{}: there is none", name, *ordinal);
  if (target == nullptr) return error(fault::not_ready, "adapter {}: no earlier version of it is ready", name);
  if (target->state != adapter_state::ready) {
    return error(fault::not_ready, "adapter {}: is {}", target->full_name(), name_of(target->state));
  }
  if (!can_answer(target->version))
    return error(fault::not_ready, "adapter {}: is missing: `troupe adapters list --json` says why",
                 target->full_name());
  point(all, target->ordinal);
  return *target;
}

result<std::vector<adapter_version>, catalogue_error> adapter_catalogue::unload(std::string_view text) {
  const auto wanted = parse(text);
  if (!wanted) return wanted.error();
  const adapter_entry* entry = find(*wanted);
  if (entry == nullptr) return error(fault::unknown, "adapter {}: there is none", shown(text));
  named& name = names_.find(wanted->name)->second;
  const auto goes = [&](adapter_version version) { return is_of_use(*find(version)); };
  const bool is_last = std::none_of(name.versions.begin(), name.versions.end(), [&](const auto& each) {
    return each.first != entry->ordinal && goes(each.second);
  });
  const bool whole = !wanted->ordinal || (is_current(*entry) && is_last);
  if (!whole && is_current(*entry))
    return error(fault::is_current, "adapter {}: answers as {}: roll back first, or unload {}", entry->full_name(),
                 wanted->name, wanted->name);
  std::vector<adapter_version> gone;
  for (const auto& [ordinal, version] : name.versions)
    if ((whole || *wanted->ordinal == ordinal) && goes(version)) gone.push_back(version);
  // The version that answered until now is to be forgotten last.
  std::stable_partition(gone.begin(), gone.end(), [&](adapter_version version) { return !is_current(*find(version)); });
  for (const adapter_version version : gone) set_state(version, adapter_state::unloaded);
  if (whole) point(name, 0);
  return gone;
}

result<adapter_entry, catalogue_error> adapter_catalogue::load(std::string_view text) {
  const auto wanted = parse(text);
  if (!wanted) return wanted.error();
  const adapter_entry* known = find(*wanted);
  if (known == nullptr) return error(fault::unknown, "adapter {}: there is none", shown(text));
  if (is_of_use(*known)) return *known;
  adapter_entry& entry = set_state(known->version, adapter_state::loading);
  entry.error.clear();
  return entry;
}

/// A version in use stays: its files may be needed again.
std::vector<adapter_entry> adapter_catalogue::forget_unloaded(const std::function<bool(adapter_version)>& is_used) {
  std::vector<adapter_entry> gone;
  const std::size_t over = unloaded_.size() - std::min(unloaded_.size(), options_.kept_unloaded);
  for (std::size_t i = 0; i < over; ++i) {
    if (!is_used(unloaded_[i])) gone.push_back(*find(unloaded_[i]));
  }
  for (const adapter_entry& entry : gone) forget(entry);
  std::erase_if(unloaded_, [&](adapter_version version) { return !entries_.contains(version); });
  return gone;
}

/// The name stays even without versions, since no ordinal is given twice.
void adapter_catalogue::forget(const adapter_entry& entry) {
  names_.find(entry.spec.name)->second.versions.erase(entry.ordinal);
  entries_.erase(entry.version);
  changed_entries_.erase(entry.version);
  forgotten_.push_back(entry.version);
}

void adapter_catalogue::unload_superseded(const named& name) {
  std::size_t newer = 0;
  for (auto each = name.versions.rbegin(); each != name.versions.rend(); ++each) {
    if (each->first == name.pointer.current || !is_of_use(*find(each->second))) continue;
    if (++newer > options_.kept_earlier) set_state(each->second, adapter_state::unloaded);
  }
}

std::vector<adapter_entry> adapter_catalogue::list(std::string_view after, std::size_t most) const {
  const std::string_view last = after.substr(0, after.find('@'));
  const std::uint32_t behind = last.size() == after.size() ? 0 : ordinal_of(after.substr(last.size() + 1)).value_or(0);
  std::vector<adapter_entry> page;
  for (auto name = names_.lower_bound(last); name != names_.end(); ++name) {
    const auto& versions = name->second.versions;
    for (auto each = versions.upper_bound(name->first == last ? behind : 0); each != versions.end(); ++each) {
      if (page.size() == most) return page;
      page.push_back(*find(each->second));
    }
  }
  return page;
}

std::vector<adapter_entry> adapter_catalogue::answering(std::size_t most) const {
  std::vector<adapter_entry> all;
  for (const auto& [name, versions] : names_) {
    if (all.size() == most) break;
    if (const adapter_entry* entry = current(name)) all.push_back(*entry);
  }
  return all;
}

std::vector<std::string> adapter_catalogue::hidden_by_base() const {
  std::vector<std::string> names;
  for (const auto& [name, versions] : names_)
    if (is_base(name) && versions.pointer.current != 0) names.push_back(name);
  return names;
}

bool adapter_catalogue::is_current(const adapter_entry& entry) const {
  const adapter_entry* pointed = current(entry.spec.name);
  return pointed != nullptr && pointed->version == entry.version;
}

catalogue_records adapter_catalogue::take_changes() {
  catalogue_records changes;
  changes.next_version = next_version_;
  for (const adapter_version version : changed_entries_) changes.entries.push_back(*find(version));
  for (const std::string& name : changed_names_) changes.pointers.push_back(names_.find(name)->second.pointer);
  changes.forgotten = std::move(forgotten_);
  forgotten_.clear();
  changed_entries_.clear();
  changed_names_.clear();
  return changes;
}

adapter_entry& adapter_catalogue::change(adapter_version version) {
  changed_entries_.insert(version);
  return entries_.find(version)->second;
}

adapter_entry& adapter_catalogue::set_state(adapter_version version, adapter_state state) {
  adapter_entry& entry = change(version);
  if (!is_of_use(entry)) std::erase(unloaded_, version);
  entry.state = state;
  if (!is_of_use(entry)) unloaded_.push_back(version);
  return entry;
}

adapter_catalogue::named& adapter_catalogue::change(const std::string& name) {
  changed_names_.insert(name);
  named& found = names_[name];
  found.pointer.name = name;
  return found;
}

void adapter_catalogue::point(named& name, std::uint32_t ordinal) {
  name.pointer.current = ordinal;
  changed_names_.insert(name.pointer.name);
}

}  // namespace troupe
