#include "actors/http/file_store.hpp"

#include <algorithm>
#include <ctime>

#include <nlohmann/json.hpp>

#include "actors/http/api_context.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr std::size_t largest_upload = 64 << 20;
constexpr std::size_t most_parts = 16;

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
}

/// The value of key="…" or key=… in a header.
std::string parameter_of(std::string_view header, std::string_view key) {
  for (std::size_t at = header.find(key); at != header.npos; at = header.find(key, at + 1)) {
    const bool whole = at > 0 && (header[at - 1] == ' ' || header[at - 1] == ';');
    std::string_view rest = header.substr(at + key.size());
    if (!whole || !rest.starts_with('=')) continue;
    rest.remove_prefix(1);
    if (rest.starts_with('"')) return std::string(rest.substr(1, rest.find('"', 1) - 1));
    return std::string(rest.substr(0, rest.find_first_of("; \r\n")));
  }
  return {};
}

std::string lower(std::string_view text) {
  std::string made(text);
  std::transform(made.begin(), made.end(), made.begin(), [](unsigned char c) { return std::tolower(c); });
  return made;
}

form_part read_part(std::string_view text) {
  const std::size_t head_end = text.find("\r\n\r\n");
  if (head_end == text.npos) refuse("the form has a part without a head");
  form_part part;
  std::string_view head = text.substr(0, head_end);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    if (!lower(line).starts_with("content-disposition:")) continue;
    part.name = parameter_of(line, "name");
    part.filename = parameter_of(line, "filename");
  }
  part.content = text.substr(head_end + 4);
  return part;
}

}  // namespace

file_store::file_store(fs::path folder) : folder_(std::move(folder)) {
  remove_partial_files(folder_);
}

stored_file file_store::add(std::string_view filename, std::string_view purpose, std::string_view content,
                            const std::string& owner) {
  stored_file made{"file-" + random_hex(24),
                   std::string(filename),
                   std::string(purpose),
                   content.size(),
                   static_cast<std::int64_t>(std::time(nullptr)),
                   owner};
  const json about{{"id", made.id},       {"filename", made.filename}, {"purpose", made.purpose},
                   {"bytes", made.bytes}, {"created", made.created},   {"owner", made.owner}};
  const std::lock_guard lock(mutex_);
  write(made.id + ".data", content);
  try {
    write(made.id + ".json", about.dump(-1, ' ', false, json::error_handler_t::replace));
  } catch (...) {
    std::error_code ignored;
    fs::remove(folder_ / (made.id + ".data"), ignored);
    throw;
  }
  return made;
}

std::optional<stored_file> file_store::find(const std::string& id) const {
  if (!is_id(id) || !id.starts_with("file-")) return std::nullopt;
  const auto text = read(id + ".json");
  const auto about = text ? json::parse(*text, nullptr, false) : json();
  if (!about.is_object()) return std::nullopt;
  return stored_file{id,
                     about.value("filename", ""),
                     about.value("purpose", ""),
                     about.value("bytes", std::uint64_t{}),
                     about.value("created", std::int64_t{}),
                     about.value("owner", "")};
}

/// What is known of a file never changes, so it is read only once.
std::optional<stored_file> file_store::find_known(const std::string& id) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
  }
  auto found = find(id);
  const std::lock_guard lock(mutex_);
  if (found) known_.emplace(id, *found);
  return found;
}

std::vector<stored_file> file_store::list() const {
  std::vector<stored_file> files;
  std::error_code fault;
  for (fs::directory_iterator each(folder_, fault), end; !fault && each != end; each.increment(fault)) {
    const fs::path path = each->path();
    if (path.extension() != ".json") continue;
    if (auto found = find_known(path.stem().string())) files.push_back(std::move(*found));
  }
  std::sort(files.begin(), files.end(), [](const stored_file& a, const stored_file& b) {
    return std::tie(b.created, a.id) < std::tie(a.created, b.id);
  });
  return files;
}

std::optional<std::string> file_store::content(const std::string& id) const {
  if (!find(id)) return std::nullopt;
  return read(id + ".data");
}

bool file_store::remove(const std::string& id) {
  if (!find(id)) return false;
  const std::lock_guard lock(mutex_);
  known_.erase(id);
  std::error_code ignored;
  fs::remove(folder_ / (id + ".data"), ignored);
  return fs::remove(folder_ / (id + ".json"), ignored);
}

void file_store::keep_about(const std::string& id, const std::string& text) {
  if (!is_id(id)) refuse("job {}: is no id", id.substr(0, 64));
  const std::lock_guard lock(mutex_);
  write(id + ".batch", text);
}

std::optional<std::string> file_store::about(const std::string& id) const {
  return is_id(id) ? read(id + ".batch") : std::nullopt;
}

void file_store::forget_about(const std::string& id) {
  if (!is_id(id)) return;
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  fs::remove(folder_ / (id + ".batch"), ignored);
}

void file_store::note_sizes(const std::string& id, output_sizes sizes) {
  constexpr std::size_t most = 20'000;  // twice the jobs that the journal keeps, since some of these may be gone
  const std::lock_guard lock(mutex_);
  if (sizes_.size() >= most) sizes_.clear();
  sizes_[id] = sizes;
}

std::optional<output_sizes> file_store::sizes(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(id);
  return found == sizes_.end() ? std::nullopt : std::optional(found->second);
}

void file_store::write(const std::string& name, std::string_view text) const {
  make_folder(folder_);
  write_file(folder_ / name, text);
}

std::optional<std::string> file_store::read(const std::string& name) const {
  std::error_code ignored;
  if (!fs::exists(folder_ / name, ignored)) return std::nullopt;
  try {
    return detail::read_text(folder_ / name, largest_upload);
  } catch (const input_error&) {
    return std::nullopt;
  }
}

std::vector<form_part> parse_form(std::string_view content_type, std::string_view body) {
  const std::string boundary = parameter_of(content_type, "boundary");
  if (!content_type.starts_with("multipart/form-data") || boundary.empty())
    refuse("the body is no multipart/form-data");
  const std::string line = "--" + boundary, separator = "\r\n" + line;
  if (!body.starts_with(line)) refuse("the form does not begin with its boundary");
  body.remove_prefix(line.size());
  std::vector<form_part> parts;
  while (body.starts_with("\r\n")) {
    const std::size_t end = body.find(separator, 2);
    if (end == body.npos) refuse("the form does not end with its boundary");
    if (parts.size() == most_parts) refuse("the form has more than {} parts", most_parts);
    parts.push_back(read_part(body.substr(2, end - 2)));
    body.remove_prefix(end + separator.size());
  }
  return parts;
}

}  // namespace troupe
