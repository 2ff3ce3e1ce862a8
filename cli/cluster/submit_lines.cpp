#include "cli/cluster/submit_lines.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "base/whole_file.hpp"
#include "cli/output.hpp"
#include "cli/twice_read.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view output_begin = R"({"index":)";

/// The index of an output, or what can be one; nothing if the line is something else.
std::optional<std::uint64_t> index_of(std::string_view line) {
  if (!line.starts_with(output_begin)) return std::nullopt;
  std::uint64_t index = 0;
  const char* const end = line.data() + line.size();
  const auto read = std::from_chars(line.data() + output_begin.size(), end, index);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != ',') return std::nullopt;
  return index;
}

/// Whether a line may be the beginning of an output whose rest was never written.
bool can_be_torn_output(std::string_view line, std::uint64_t least_index) {
  if (output_begin.starts_with(line)) return true;
  if (const auto index = index_of(line)) return *index >= least_index;
  return line.starts_with(output_begin) && line.find_first_not_of("0123456789", output_begin.size()) == line.npos;
}

}  // namespace

line_reader::line_reader(fs::path path)
    : path_(std::move(path)), in_(open_to_read_twice(path_.string(), "name a file with a JSON object in each line")) {}

bool line_reader::next(std::string& line) {
  static const std::size_t most_bytes = journal::options().max_line_bytes;
  while (std::getline(in_, line)) {
    ++number_;
    if (line.size() > most_bytes)
      refuse("{}:{}: has {} bytes, and a line of a job may have {}: shorten it", path_.string(), number_, line.size(),
             most_bytes);
    if (!is_utf8(line)) refuse("{}:{}: is no UTF-8: convert the file", path_.string(), number_);
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) return true;
  }
  return false;
}

output_file::output_file(fs::path path) : path_(std::move(path)) {
  file_ = file_descriptor(path_ == "-" ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                                       : ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  struct stat about {};
  if (!file_.is_open() || ::fstat(file_.number(), &about) != 0) refuse_to_write(path_, errno, "choose another file");
  is_regular_ = path_ != "-" && S_ISREG(about.st_mode);
  if (is_regular_) read_lines();
}

void output_file::read_lines() {
  const auto check_line = [&](bool fits) {
    if (!fits) refuse("{}: holds something else than answers: move it away, or name another file", path_.string());
  };
  std::ifstream in(path_, std::ios::binary);
  if (!in)
    refuse("{}: cannot be read: {}: check its permissions, or name another file", path_.string(), std::strerror(errno));
  for (std::string text; std::getline(in, text);) {
    if (in.eof()) return check_line(can_be_torn_output(text, next_index()));
    const auto index = index_of(text);
    check_line(index && *index >= next_index());
    whole_bytes_ += text.size() + 1;
    ++lines_;
    last_ = line{*index, std::move(text)};
    if (!first_) first_ = last_;
  }
}

void output_file::cut_torn_line() {
  const auto whole = static_cast<off_t>(whole_bytes_);
  if (!is_regular_) return;
  if (::ftruncate(file_.number(), whole) != 0 || ::lseek(file_.number(), whole, SEEK_SET) != whole) fail();
}

void output_file::append(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  if (!write_all(file_.number(), text)) fail();
}

void output_file::sync() const {
  if (is_regular_ && ::fsync(file_.number()) != 0) fail();
}

void output_file::fail() const {
  if (errno == EPIPE) throw output_closed();
  fail_to_write(path_, errno, "choose another file");
}

}  // namespace troupe
