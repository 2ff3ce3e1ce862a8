#include "cli/cluster/submit_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr std::size_t chunk_bytes = 2 << 20, chunk_lines = 5000;
constexpr auto poll_interval = std::chrono::milliseconds(100);

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

struct input_summary {
  std::uint64_t lines = 0;
  std::string id;
};

input_summary summarize(const file_submission& what) {
  input_summary sum;
  sha256 digest;
  digest.add_field(what.options);
  line_reader reader(what.in);
  for (std::string line; reader.next(line); ++sum.lines) digest.add_field(line);
  if (what.is_new_job) digest.add_field(std::to_string(std::chrono::system_clock::now().time_since_epoch().count()));
  sum.id = "batch-" + digest.finish().substr(0, 32);
  return sum;
}

void send_lines(cluster_client& cluster, const file_submission& what, const input_summary& sum, std::uint64_t sent) {
  line_reader reader(what.in);
  progress bar("sending " + what.in.string());
  auto chunk = json::array();
  std::size_t bytes = 0;
  std::uint64_t first = sent, number = 0;
  const auto flush = [&] {
    if (chunk.empty()) return;
    const std::size_t count = chunk.size();
    cluster.command("job.lines", dump({{"id", sum.id}, {"first", first}, {"lines", std::move(chunk)}}));
    first += count;
    chunk = json::array();
    bytes = 0;
    bar.update(static_cast<std::int64_t>(first), static_cast<std::int64_t>(sum.lines));
  };
  for (std::string line; reader.next(line); ++number) {
    if (number < sent) continue;
    if (number >= sum.lines) break;
    if (bytes + line.size() > chunk_bytes || chunk.size() >= chunk_lines) flush();
    bytes += line.size();
    chunk.push_back(std::move(line));
  }
  flush();
}

json page_of(cluster_client& cluster, const std::string& id, std::uint64_t from, std::uint64_t limit) {
  return read_answer(cluster.command("job.outputs", dump({{"id", id}, {"from", from}, {"limit", limit}})));
}

bool can_be_output(std::string_view line, std::uint64_t index) {
  return line.starts_with(fmt::format(R"({{"index":{},)", index));
}

/// Whether a line may be the beginning of an output whose rest was never written.
bool can_be_torn_output(std::string_view line, std::uint64_t index) {
  const std::string begin = fmt::format(R"({{"index":{},)", index);
  return line.starts_with(begin) || std::string_view(begin).starts_with(line);
}

void check_apart(const file_submission& what) {
  std::error_code fault;
  if (fs::equivalent(what.in, what.out, fault))
    refuse("{}: is what --file reads: name another file for --out", what.out.string());
}

/// What is in the file must be what the job says of these lines.
void check_belongs(cluster_client& cluster, const file_submission& what, const input_summary& sum,
                   const output_file& out) {
  if (out.lines() == 0) return;
  const auto wrong = [&] {
    refuse("{}: holds something else than answers to {}: move it away, or name another file", what.out.string(),
           what.in.string());
  };
  if (out.lines() > sum.lines) wrong();
  const json page = page_of(cluster, sum.id, out.lines() - 1, 1);
  const json& outputs = page.at("outputs");
  if (outputs.empty() || outputs[0].at("index") != out.lines() - 1 ||
      outputs[0].at("text").get<std::string>() != out.last_line())
    wrong();
}

/// Until the job is over and all its outputs are in the file.
json collect(cluster_client& cluster, const input_summary& sum, output_file& out) {
  progress bar("answering");
  std::uint64_t next = out.lines();
  while (true) {
    const json page = page_of(cluster, sum.id, next, 1 << 20);
    std::vector<std::string> lines;
    for (const json& each : page.at("outputs")) {
      next = each.at("index").get<std::uint64_t>() + 1;
      lines.push_back(each.at("text").get<std::string>());
    }
    out.append(lines);
    const json& job = page.at("job");
    const auto done = job.value("ok", std::int64_t{0}) + job.value("failed", std::int64_t{0});
    bar.update(done, static_cast<std::int64_t>(sum.lines));
    if (lines.empty() && is_over(job.value("state", ""))) return job;
    if (lines.empty()) std::this_thread::sleep_for(poll_interval);
  }
}

}  // namespace

// --- files ---

struct line_reader::state {
  std::ifstream in;
};

line_reader::line_reader(const fs::path& file) : state_(std::make_unique<state>()) {
  std::error_code fault;
  if (fs::is_directory(file, fault))
    refuse("{}: is a folder: name a file with a JSON object in each line", file.string());
  if (fs::exists(file, fault) && !fs::is_regular_file(file, fault))
    refuse("{}: is no regular file, and is read twice: save it first", file.string());
  state_->in.open(file, std::ios::binary);
  if (!state_->in) refuse("{}: cannot be read: {}", file.string(), std::strerror(errno));
}

line_reader::~line_reader() = default;

bool line_reader::next(std::string& line) {
  while (std::getline(state_->in, line)) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) return true;
  }
  return false;
}

output_file::output_file(fs::path file) : file_(std::move(file)) {
  number_ = file_ == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                         : ::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  struct stat about {};
  if (number_ < 0 || ::fstat(number_, &about) != 0)
    refuse("{}: cannot be written: {}", file_.string(), std::strerror(errno));
  is_regular_ = file_ != "-" && S_ISREG(about.st_mode);
  if (is_regular_) look();
}

output_file::~output_file() {
  ::close(number_);
}

void output_file::look() {
  const auto check_line = [&](bool fits) {
    if (!fits) refuse("{}: holds something else than answers: move it away, or name another file", file_.string());
  };
  std::ifstream in(file_, std::ios::binary);
  if (!in) refuse("{}: cannot be read: {}", file_.string(), std::strerror(errno));
  for (std::string line; std::getline(in, line); ++lines_) {
    if (in.eof()) return check_line(can_be_torn_output(line, lines_));
    check_line(can_be_output(line, lines_));
    whole_bytes_ += line.size() + 1;
    last_ = std::move(line);
  }
}

void output_file::cut_torn_line() {
  const auto whole = static_cast<off_t>(whole_bytes_);
  if (is_regular_ && (::ftruncate(number_, whole) != 0 || ::lseek(number_, whole, SEEK_SET) != whole))
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
}

void output_file::append(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const auto put = ::write(number_, rest.data(), rest.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EPIPE) throw output_closed();
    if (put < 0)
      throw std::runtime_error(fmt::format("{}: cannot be written: {}", file_.string(), std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(put));
  }
  lines_ += lines.size();
  if (!lines.empty()) last_ = lines.back();
}

void output_file::sync() const {
  ::fsync(number_);
}

json submit_file(cluster_client& cluster, const file_submission& what) {
  check_apart(what);
  const input_summary sum = summarize(what);
  output_file out(what.out);
  const interrupt_guard guard;
  const json spec{{"id", sum.id}, {"lines", sum.lines}, {"options", json::parse(what.options)}};
  const json job = read_answer(cluster.command("job.create", dump(spec)));
  if (job.value("state", "") == "cancelled") refuse("{}: was cancelled before: add --new to begin anew", sum.id);
  if (job.value("state", "") == "receiving") {
    send_lines(cluster, what, sum, job.value("received", std::uint64_t{0}));
    cluster.command("job.seal", dump({{"id", sum.id}}));
  }
  check_belongs(cluster, what, sum, out);
  out.cut_torn_line();
  const json ended = collect(cluster, sum, out);
  out.sync();
  return ended;
}

}  // namespace troupe
