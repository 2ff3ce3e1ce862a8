// Events of jobs, and the adapter catalogue.
#include "cluster/journal/journal.hpp"
#include "cluster/journal/journal_database.hpp"
#include "cluster/journal/journal_impl.hpp"

namespace troupe {
namespace {

job_event event_of(const statement& row) {
  return {.number = row.count(0), .at = row.number(1), .kind = row.text(2), .text = row.text(3)};
}

adapter_entry adapter_of(const statement& row) {
  adapter_entry entry;
  entry.version = adapter_version{static_cast<std::uint32_t>(row.number(0))};
  entry.ordinal = static_cast<std::uint32_t>(row.number(2));
  entry.spec = {.name = row.text(1),
                .sha256 = row.text(3),
                .bytes = row.count(4),
                .rank = static_cast<std::uint32_t>(row.number(5)),
                .base = model_id{row.count(6)}};
  entry.state = row.number(7) <= 3 ? static_cast<adapter_state>(row.number(7)) : adapter_state::failed;
  entry.error = row.text(8);
  return entry;
}

adapter_pointer pointer_of(const statement& row) {
  const auto ordinal = [&](int column) { return static_cast<std::uint32_t>(row.number(column)); };
  return {.name = row.text(0), .current = ordinal(1), .newest = ordinal(2), .next = ordinal(3)};
}

void save_entry(detail::database& db, const adapter_entry& entry) {
  const adapter_spec& spec = entry.spec;
  (db.prepare("INSERT OR REPLACE INTO adapters (version, name, ordinal, sha256, bytes, rank, base, state, error) "
              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
   << entry.version.value << spec.name << entry.ordinal << spec.sha256 << spec.bytes << spec.rank
   << static_cast<std::int64_t>(spec.base.value) << static_cast<std::int64_t>(entry.state) << entry.error)
      .run();
}

void save_pointer(detail::database& db, const adapter_pointer& pointer) {
  (db.prepare("INSERT OR REPLACE INTO adapter_names (name, current, newest, next) VALUES (?, ?, ?, ?)")
   << pointer.name << pointer.current << pointer.newest << pointer.next)
      .run();
}

std::optional<journal_error> fault_of(std::string_view job, const event_record& event, std::size_t most_bytes) {
  const auto& [kind, text] = event;
  if (kind.empty() || kind.size() > 64) return error(reason::invalid, "job {}: an event's kind is a word", job);
  if (text.size() > most_bytes)
    return error(reason::too_large, "job {}: an event of {} bytes: at most {}", job, text.size(), most_bytes);
  return {};
}

/// Where the next event goes.
struct events_end {
  std::int64_t job = 0;    ///< its number
  std::uint64_t last = 0;  ///< number of its newest event; 0: it has none
};

events_end end_of_events(detail::database& db, std::string_view job) {
  statement query = db.prepare(
      "SELECT jobs.number, ifnull(max(events.number), 0) FROM jobs LEFT JOIN events ON events.job = jobs.number "
      "WHERE jobs.id = ?");
  query << job;
  query.step();
  return {.job = query.number(0), .last = query.count(1)};
}

}  // namespace

result<std::uint64_t, journal_error> journal::append_event(std::string_view id, std::string_view kind,
                                                           std::string_view text) {
  const event_record one{kind, text};
  return append_events(id, std::span(&one, 1));
}

result<std::uint64_t, journal_error> journal::append_events(std::string_view id, std::span<const event_record> events) {
  if (!find(id)) return detail::no_such_job(id);
  for (const event_record& event : events)
    if (const auto wrong = fault_of(id, event, options_.max_event_bytes)) return *wrong;
  transaction change(*db_, transaction::kind::durable);
  auto [job, number] = end_of_events(*db_, id);
  for (const auto& [kind, text] : events) {
    (db_->prepare("INSERT INTO events (job, number, at, kind, text) VALUES (?, ?, ?, ?, ?)")
     << job << ++number << now() << kind << text)
        .run();
  }
  if (number > options_.max_events) {
    (db_->prepare("DELETE FROM events WHERE job = ? AND number <= ?") << job << number - options_.max_events).run();
  }
  change.commit();
  return number;
}

std::vector<job_event> journal::events(std::string_view id, std::uint64_t after, std::size_t limit) const {
  statement query = db_->prepare(
      "SELECT number, at, kind, text FROM events WHERE job = (SELECT number FROM jobs WHERE id = ?) AND number > ? "
      "ORDER BY number LIMIT ?");
  query << id << after << std::uint64_t{limit};
  return detail::page_of(query, options_.page_bytes, event_of);
}

std::vector<job_event> journal::events_before(std::string_view id, std::uint64_t number, std::size_t limit) const {
  statement query = db_->prepare(
      "SELECT number, at, kind, text FROM events WHERE job = (SELECT number FROM jobs WHERE id = ?) AND number < ? "
      "ORDER BY number DESC LIMIT ?");
  query << id << number << std::uint64_t{limit};
  return detail::page_of(query, options_.page_bytes, event_of);
}

std::optional<job_event> journal::last_event(std::string_view id, std::string_view kind) const {
  statement query = db_->prepare(
      "SELECT number, at, kind, text FROM events WHERE job = (SELECT number FROM jobs WHERE id = ?) AND kind = ? "
      "ORDER BY number DESC LIMIT 1");
  query << id << kind;
  if (!query.step()) return {};
  return event_of(query);
}

void journal::save(const catalogue_records& changes) {
  if (changes.empty()) return;
  transaction change(*db_, transaction::kind::durable);
  for (const adapter_entry& entry : changes.entries) save_entry(*db_, entry);
  for (const adapter_pointer& pointer : changes.pointers) save_pointer(*db_, pointer);
  for (const adapter_version version : changes.forgotten)
    (db_->prepare("DELETE FROM adapters WHERE version = ?") << version.value).run();
  (db_->prepare("UPDATE heads SET next_version = max(next_version, ?)") << changes.next_version).run();
  change.commit();
}

catalogue_records journal::load_catalogue() const {
  catalogue_records all;
  statement adapters = db_->prepare(
      "SELECT version, name, ordinal, sha256, bytes, rank, base, state, error FROM adapters ORDER BY version");
  while (adapters.step()) all.entries.push_back(adapter_of(adapters));
  statement names = db_->prepare("SELECT name, current, newest, next FROM adapter_names");
  while (names.step()) all.pointers.push_back(pointer_of(names));
  all.next_version = static_cast<std::uint32_t>(db_->number_of("SELECT next_version FROM heads"));
  return all;
}

std::optional<std::string> journal::owner_of_adapter(std::string_view name) const {
  statement query = db_->prepare(
      "SELECT owner FROM adapter_owners WHERE name = ? UNION ALL SELECT '' FROM adapters WHERE name = ? "
      "UNION ALL SELECT '' FROM adapter_names WHERE name = ?");
  query << name << name << name;
  return query.step() ? std::optional(query.text(0)) : std::nullopt;
}

void journal::give_adapter(std::string_view name, std::string_view owner) {
  transaction change(*db_, transaction::kind::durable);
  (db_->prepare("INSERT OR IGNORE INTO adapter_owners (name, owner) VALUES (?, ?)") << name << owner).run();
  change.commit();
}

}  // namespace troupe
