#include <algorithm>
#include <functional>
#include <tuple>

#include "actors/http/files/form_data.hpp"
#include "actors/http/files/owned_files.hpp"
#include "actors/http/jobs/batch_outputs.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/list_page_impl.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

constexpr std::size_t longest_name = 1024;  // lists repeat them

json to_json(const stored_file& file) {
  return {{"id", file.id},
          {"object", "file"},
          {"bytes", file.bytes},
          {"created_at", file.created},
          {"filename", file.filename},
          {"purpose", file.purpose},
          {"status", "processed"}};
}

stored_file keep(const api_call& call, const form_part& file, const std::string& purpose) try {
  return call.context->files.add(file.filename, purpose, file.content, call.key.name);
} catch (const full_error& error) {
  throw api_error(413, error.what(), "file", "insufficient_quota");
}

/// Runs where the disk may take its time.
void on_file_thread(const api_call& call, std::function<void()> handle) {
  guarded_later(*call.context->file_work, call.key.name, call.exchange, std::move(handle), call.request->body.size());
}

void upload_now(const api_call& call) {
  const auto parts = parse_form(call.request->header("content-type"), call.request->body);
  const auto named = [&](const char* name) {
    const auto found =
        std::find_if(parts.begin(), parts.end(), [&](const form_part& part) { return part.name == name; });
    if (found == parts.end()) request_fields::refuse_missing(name);
    return found;
  };
  const auto file = named("file"), purpose = named("purpose");
  if (purpose->content != "batch" && purpose->content != "fine-tune")
    refuse_field("purpose", "purpose should be batch or fine-tune", "unsupported_value");
  if (file->content.empty()) refuse_field("file", "file is empty");
  if (file->filename.size() > longest_name)
    refuse_field("file",
                 fmt::format("the file's name has {} bytes: use at most {}", file->filename.size(), longest_name));
  reply_json(call.exchange, to_json(keep(call, *file, purpose->content)));
}

void upload(const api_call& call) {
  on_file_thread(call, [call] { upload_now(call); });
}

/// Writes a page of files, newest first. Outputs of batches whose size nobody has asked for yet are measured on the
/// way; the page ends early where that would take long, and the next one goes on there.
class file_lister : public std::enable_shared_from_this<file_lister> {
 public:
  file_lister(api_call call, std::vector<listed_file> files, list_page page)
      : call_(std::move(call)), files_(std::move(files)), page_(std::move(page)) {
    std::sort(files_.begin(), files_.end(), [](const listed_file& a, const listed_file& b) {
      return std::tie(b.file.created, b.file.nanoseconds, a.file.id) <
             std::tie(a.file.created, a.file.nanoseconds, b.file.id);
    });
    if (page_.oldest_first()) std::reverse(files_.begin(), files_.end());
  }

  void go_on() {
    for (; next_ < files_.size(); ++next_) {
      const step taken = take(files_[next_]);
      if (taken == step::wait) return;
      if (taken == step::full) break;
    }
    reply_json(call_.exchange, page_.finish());
  }

 private:
  enum class step : std::uint8_t {
    next,
    wait,  ///< for the file's size: go_on() is called again
    full
  };

  step take(const listed_file& each) {
    if (each.is_gone) {
      page_.pass(each.file.id);
      return step::next;
    }
    if (!each.unmeasured || !page_.takes_next())
      return page_.add(each.file.id, [&] { return to_json(each.file); }) ? step::next : step::full;
    if (lines_left_ == 0) {
      page_.end_early();
      return step::full;
    }
    measure(*each.unmeasured);  // `each` may be gone after this
    return step::wait;
  }
  void measure(const unmeasured_file& which) {
    job_records& records = *call_.context->records;
    if (!records.find_batch(which.file.batch)) {  // it was forgotten meanwhile
      files_.erase(files_.begin() + static_cast<std::ptrdiff_t>(next_));
      return go_on();
    }
    if (!records.sizes(which.file.batch)) lines_left_ -= std::min(lines_left_, which.lines + as_long_as_lines);
    measure_ended(call_, which.file, [self = shared_from_this()](std::uint64_t bytes) {
      self->files_[self->next_].file.bytes = bytes;
      self->files_[self->next_].unmeasured.reset();
      self->go_on();
    });
  }

  static constexpr std::uint64_t as_long_as_lines = 50;  // what else is to do for a batch: its size is kept on the disk

  api_call call_;
  std::vector<listed_file> files_;
  list_page page_;
  std::size_t next_ = 0;
  std::uint64_t lines_left_ = 2'000;
};

void reply_list(const api_call& call, std::vector<listed_file> files, const list_page& page) {
  std::make_shared<file_lister>(call, std::move(files), page)->go_on();
}

void list_all(const api_call& call) {
  const list_page page(*call.request, {.usual = 10'000, .most = 10'000, .has_oldest_first = true});
  const std::string purpose = call.request->query_value("purpose"), after = call.request->query_value("after");
  std::vector<listed_file> uploaded;
  for (stored_file& each : call.context->files.list())
    if (call.key.owns(each.owner) && (purpose.empty() || each.purpose == purpose))
      uploaded.push_back({.file = std::move(each)});
  // Who deletes all files of a page asks for those behind one that is not there any more.
  if (auto gone = call.context->files.find_removed(after); gone && call.key.owns(gone->owner))
    uploaded.push_back({.file = *std::move(gone), .is_gone = true});
  if (!purpose.empty() && purpose != "batch_output") return reply_list(call, std::move(uploaded), page);
  const auto kept = std::make_shared<const std::vector<listed_file>>(std::move(uploaded));  // copied for each page
  list_batch_files(call, [call, kept, page](std::vector<listed_file> all) {
    all.insert(all.end(), kept->begin(), kept->end());
    reply_list(call, std::move(all), page);
  });
}

void list_files(const api_call& call) {
  on_file_thread(call, [call] { list_all(call); });
}

void show_file(const api_call& call) {
  const std::string& id = call.path_part();
  if (const auto batch = batch_file_of(id))
    return find_batch_file(
        call, *batch, [exchange = call.exchange](const stored_file& file) { reply_json(exchange, to_json(file)); });
  reply_json(call.exchange, to_json(owned_file(call, id)));
}

void send_file(const api_call& call) {
  const std::string& id = call.path_part();
  if (const auto batch = batch_file_of(id)) return send_batch_file(call, *batch);
  on_file_thread(call, [call] {
    call.exchange->reply({.content_type = "application/octet-stream", .body = owned_content(call, call.path_part())});
  });
}

void remove_file(const api_call& call) {
  const std::string& id = call.path_part();
  if (const auto batch = batch_file_of(id)) return refuse_to_remove(call, *batch);
  on_file_thread(call, [call, id] {
    (void)owned_file(call, id);
    call.context->files.remove(id);
    reply_json(call.exchange, {{"id", id}, {"object", "file"}, {"deleted", true}});
  });
}

}  // namespace

void add_file_routes(api_routes& to) {
  to.add("POST", "/v1/files", upload);
  to.add("GET", "/v1/files", list_files);
  to.add("GET", "/v1/files/{id}", show_file);
  to.add("GET", "/v1/files/{id}/content", send_file);
  to.add("DELETE", "/v1/files/{id}", remove_file);
}

}  // namespace troupe
