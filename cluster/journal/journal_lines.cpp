// Lines of jobs, and their outputs.
#include <algorithm>
#include <map>

#include "cluster/journal/journal.hpp"
#include "cluster/journal/journal_database.hpp"
#include "cluster/journal/journal_impl.hpp"

namespace troupe {
namespace {

/// Whether lines that were sent again are the same as before.
bool are_stored(detail::database& db, std::string_view id, std::uint64_t first, std::span<const std::string> lines) {
  statement query = db.prepare(
      "SELECT text FROM lines WHERE job = (SELECT number FROM jobs WHERE id = ?) AND line >= ? ORDER BY line");
  query << id << first;
  return std::all_of(lines.begin(), lines.end(), [&](auto& line) { return query.step() && query.text(0) == line; });
}

std::uint64_t bytes_in(std::span<const std::string> lines) {
  std::uint64_t bytes = 0;
  for (const std::string& line : lines) bytes += line.size();
  return bytes;
}

void store(detail::database& db, std::string_view id, std::uint64_t first, std::span<const std::string> lines) {
  statement insertion = db.prepare("INSERT INTO lines (job, line, text) SELECT number, ?, ? FROM jobs WHERE id = ?");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    (insertion << first + i << lines[i] << id).run();
    insertion.reset();
  }
  (db.prepare("UPDATE jobs SET received = ?, bytes = bytes + ? WHERE id = ?")
   << first + lines.size() << bytes_in(lines) << id)
      .run();
}

std::optional<journal_error> check_lines(const job_info& job, std::uint64_t first, std::span<const std::string> lines,
                                         std::size_t longest) {
  const std::string& id = job.spec.id;
  if (first > job.received) {
    return error(reason::invalid, "job {}: line {} before line {}: lines come in order", id, first, job.received);
  }
  if (lines.size() > job.spec.lines - first) {
    return error(reason::invalid, "job {}: has {} lines, not {}", id, job.spec.lines, first + lines.size());
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() <= longest) continue;
    return error(reason::too_large, "job {}: line {} has {} bytes: at most {}", id, first + i, lines[i].size(),
                 longest);
  }
  return {};
}

/// What outputs change in the jobs they belong to.
class recorder {
 public:
  explicit recorder(detail::database& db)
      : db_(db),
        find_(db.prepare("SELECT number, state, lines FROM jobs WHERE id = ?")),
        insertion_(db.prepare("INSERT OR IGNORE INTO outputs (job, line, ok, text) VALUES (?, ?, ?, ?)")) {}

  bool record(const line_record& line) {
    tally& job = job_of(line.job);
    if (line.index >= job.lines || is_finished(job.state) || job.state == job_state::receiving) return false;
    insertion_.reset();
    const bool is_new = (insertion_ << job.number << line.index << std::int64_t{line.ok} << line.text).run() > 0;
    if (!is_new) return false;
    ++(line.ok ? job.ok : job.failed);
    job.bytes += line.text.size();
    return true;
  }

  /// Writes the counts; a job that has all its outputs has succeeded.
  void write_tallies(std::int64_t now) {
    for (const auto& [id, job] : jobs_) {
      if (job.ok + job.failed == 0) continue;
      (db_.prepare(
           "UPDATE jobs SET line_ok = line_ok + ?, line_failed = line_failed + ?, bytes = bytes + ? WHERE number = ?")
       << job.ok << job.failed << job.bytes << job.number)
          .run();
      (db_.prepare("UPDATE jobs SET state = ?, finished = ? WHERE number = ? AND line_ok + line_failed = lines")
       << code_of(job_state::succeeded) << now << job.number)
          .run();
    }
  }

 private:
  struct tally {
    std::int64_t number = 0;
    job_state state = job_state::receiving;
    std::uint64_t lines = 0, ok = 0, failed = 0, bytes = 0;
  };

  tally& job_of(std::string_view id) {
    const auto known = jobs_.find(id);
    if (known != jobs_.end()) return known->second;
    tally& job = jobs_[id];
    find_.reset();
    find_ << id;
    if (find_.step()) job = {find_.number(0), static_cast<job_state>(find_.number(1)), find_.count(2)};
    find_.reset();
    return job;
  }

  detail::database& db_;
  statement find_, insertion_;
  std::map<std::string_view, tally> jobs_;
};

}  // namespace

result<std::uint64_t, journal_error> journal::add_lines(std::string_view id, std::uint64_t first,
                                                        std::span<const std::string> lines) {
  const auto job = find(id);
  if (!job) return detail::no_such_job(id);
  if (const auto wrong = check_lines(*job, first, lines, options_.max_line_bytes)) return *wrong;
  const std::size_t repeated = std::min<std::uint64_t>(lines.size(), job->received - first);
  if (!are_stored(*db_, id, first, lines.first(repeated))) {
    return error(reason::conflict, "job {}: lines from {} on were sent before with another content", id, first);
  }
  if (repeated == lines.size()) return job->received;
  if (job->state != job_state::receiving) return error(reason::wrong_state, "job {}: is {}", id, name_of(job->state));
  if (const auto wrong = check_room(*job, lines.subspan(repeated))) return *wrong;
  transaction change(*db_, transaction::kind::quick);
  store(*db_, id, first + repeated, lines.subspan(repeated));
  change.commit();
  return first + lines.size();
}

std::uint64_t journal::bytes_of(std::string_view tenant) const {
  statement query =
      db_->prepare("SELECT ifnull(sum(bytes), 0) FROM jobs WHERE tenant = ? AND state <> " TROUPE_REMOVED);
  query << tenant;
  query.step();
  return query.count(0);
}

bool journal::has_room(std::string_view tenant) const {
  return tenant.empty() || bytes_of(tenant) < options_.max_tenant_bytes;
}

std::optional<journal_error> journal::check_room(const job_info& job, std::span<const std::string> lines) const {
  const std::string& tenant = job.spec.tenant;
  const std::uint64_t most = options_.max_tenant_bytes, more = bytes_in(lines);
  const std::uint64_t taken = tenant.empty() ? 0 : bytes_of(tenant);
  if (tenant.empty() || more <= most - std::min(taken, most)) return {};
  return error(reason::full,
               "job {}: its lines take {} bytes more, and what is kept of its key's jobs, with its lines so far, takes "
               "{} of {} that it may: have some that are over forgotten (troupe jobs forget), or send fewer lines",
               job.spec.id, more, taken, most);
}

std::vector<job_line> journal::unfinished_lines(std::string_view id, std::uint64_t from, std::size_t limit) const {
  statement query = db_->prepare(
      "SELECT line, text FROM lines WHERE job = (SELECT number FROM jobs WHERE id = ?) AND line >= ? AND NOT EXISTS "
      "(SELECT 1 FROM outputs WHERE outputs.job = lines.job AND outputs.line = lines.line) ORDER BY line LIMIT ?");
  query << id << from << std::uint64_t{limit};
  return detail::page_of(query, options_.page_bytes, [](statement& row) {
    return job_line{row.count(0), row.text(1)};
  });
}

result<std::vector<bool>, journal_error> journal::record_all(std::span<const line_record> records) {
  for (const line_record& each : records) {
    if (each.text.size() <= options_.max_output_bytes) continue;
    return error(reason::too_large, "job {}: the output of line {} has {} bytes: at most {}", each.job.substr(0, 64),
                 each.index, each.text.size(), options_.max_output_bytes);
  }
  std::vector<bool> is_new;
  is_new.reserve(records.size());
  transaction change(*db_, transaction::kind::quick);
  {
    recorder book(*db_);
    for (const line_record& each : records) is_new.push_back(book.record(each));
    book.write_tallies(now());
  }
  change.commit();
  return is_new;
}

std::vector<line_output> journal::outputs(std::string_view id, std::uint64_t from, std::size_t limit,
                                          std::size_t most_bytes) const {
  const auto job = find(id);
  if (!job) return {};
  statement query = db_->prepare(
      "SELECT line, text, ok FROM outputs WHERE job = (SELECT number FROM jobs WHERE id = ?) AND line >= ? "
      "ORDER BY line LIMIT ?");
  query << id << from << std::uint64_t{limit};
  auto page = detail::page_of(query, std::min(most_bytes, options_.page_bytes), [](statement& row) {
    return line_output{row.count(0), row.text(1), row.number(2) != 0};
  });
  if (is_finished(job->state)) return page;
  const auto gap = std::find_if(page.begin(), page.end(), [&](auto& line) { return line.index != from++; });
  page.erase(gap, page.end());
  return page;
}

}  // namespace troupe
