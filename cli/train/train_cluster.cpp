#include "cli/train/train_cluster.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/entropy.hpp"
#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/sha256.hpp"
#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/train/training_display.hpp"
#include "cli/twice_read.hpp"
#include "cluster/journal/job.hpp"
#include "model/train/data/training_data.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t piece_bytes = 512 << 10;  // escapes in JSON can double them
constexpr auto follow_interval = std::chrono::milliseconds(200);

std::string file_name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

/// A file that is sent, read twice: in pieces, and for its digest.
class sent_file {
 public:
  explicit sent_file(const std::string& path) : path_(path), in_(open_to_read_twice(path, "name a file")) {
    in_.seekg(0, std::ios::end);
    size_ = static_cast<std::int64_t>(in_.tellg());
    if (size_ <= 0) refuse("{}: is empty: give it an example in each line", path);
  }

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  /// What follows there, of whole characters.
  std::string piece_at(std::int64_t at) {
    in_.clear();
    in_.seekg(at);
    std::string piece(to_size(std::min<std::int64_t>(piece_bytes, size_ - at)), '\0');
    in_.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (in_.gcount() != static_cast<std::streamsize>(piece.size())) refuse("{}: became shorter", path_);
    const std::size_t whole = bytes_of_whole_characters(piece);
    if (whole > 0 && at + static_cast<std::int64_t>(piece.size()) < size_) piece.resize(whole);
    return piece;
  }
  std::string digest() {
    in_.clear();
    in_.seekg(0);
    sha256 digest;
    std::string piece(piece_bytes, '\0');
    while (in_.read(piece.data(), static_cast<std::streamsize>(piece.size())), in_.gcount() > 0)
      digest.add(std::string_view(piece).substr(0, to_size(in_.gcount())));
    return digest.finish();
  }

 private:
  std::string path_;
  std::ifstream in_;
  std::int64_t size_ = 0;
};

/// After a lost answer, or with a new head, it goes on where the head's copy ends. Returns the digest.
std::string send_file(cluster_client& cluster, const std::string& id, const std::string& which, sent_file& file,
                      const std::string& name) {
  progress bar("sending " + name);
  for (std::int64_t at = 0; at < file.size();) {
    const std::string piece = file.piece_at(at);
    if (!is_utf8(piece)) check_utf8(file.path(), mapped_file(file.path()).text());  // names the line
    const json taken = cluster.command("train.data", {{"id", id}, {"file", which}, {"offset", at}, {"text", piece}});
    at = taken.at("received").get<std::int64_t>();
    bar.update(at, file.size());
  }
  return file.digest();
}

/// Shows what is new about a job, in the way in which local training is shown.
class follower {
 public:
  follower(cluster_client& cluster, std::string id, bool as_json)
      : cluster_(cluster), id_(std::move(id)), as_json_(as_json) {}

  /// The job as it is now; one page of its news is shown.
  json look() {
    const json page = cluster_.command("job.events", {{"id", id_}, {"after", last_}});
    const json& job = page.at("job");
    check_is_training(job);
    const auto steps = job.value("steps", std::int64_t{0}), step = job.value("step", std::int64_t{0});
    if (!display_ && steps > 0) display_.emplace(steps, step, as_json_);
    has_news_ = !page.at("events").empty();
    for (const json& event : page.at("events")) {
      last_ = event.at("number").get<std::uint64_t>();
      show(event.at("kind").get<std::string>(), event.at("data"));
    }
    if (display_ && steps > 0 && step > 0)
      display_->show(step, job.value("loss", 0.0), job.value("tokens_per_second", 0.0));
    return job;
  }
  /// Whether the last look showed some: there may be another page.
  bool has_news() const { return has_news_; }
  /// Whether some of its data were messages, as far as was seen by now.
  bool has_chats() const { return has_chats_; }

 private:
  void show(const std::string& kind, const json& data) {
    if (kind == message_event && data.is_object()) {
      training_display::note(one_line(data.value("text", "")));
      has_chats_ |= data.value("chats", std::int64_t{0}) > 0;
    } else if (kind == metrics_event && data.contains("validation_loss") && display_) {
      display_->show(data.value("step", std::int64_t{0}),
                     {data.value("validation_loss", 0.0), data.value("validation_accuracy", 0.0)});
    }
  }

  cluster_client& cluster_;
  std::string id_;
  bool as_json_;
  std::uint64_t last_ = 0;
  bool has_news_ = false, has_chats_ = false;
  std::optional<training_display> display_;
};

/// `flags`: those that name the cluster. `chat`: " --chat" if its data were chats.
int report(const json& job, const std::string& flags, const std::string& chat, bool as_json) {
  if (as_json) print_json(job);
  const std::string id = job.value("id", "");
  const auto state = state_of(job);
  if (state == job_state::failed) throw std::runtime_error(fmt::format("{}: failed: {}", id, job.value("error", "")));
  if (state == job_state::cancelled) throw std::runtime_error(id + ": was cancelled");
  if (state == job_state::paused)
    throw std::runtime_error(fmt::format("{0}: is paused: troupe jobs resume {0}{1} lets it go on", id, flags));
  if (as_json) return 0;
  const std::string version = job.value("result", ""), name = version.substr(0, version.rfind('@'));
  print(fmt::format("{}: {} answers now: try troupe submit{} --adapter {}{} --prompt …\n", id, version, chat, name,
                    flags));
  return 0;
}

}  // namespace

void check_is_training(const json& job) {
  if (job.value("kind", "") == batch_kind)
    refuse("job {0} is a batch: troupe jobs collect {0} writes its answers", job.value("id", ""));
}

int follow_training(cluster_client& cluster, const std::string& id, bool as_json) {
  const interrupt_guard guard;
  follower job(cluster, id, as_json);
  try {
    json now = job.look();
    while (!is_over(now) && state_of(now) != job_state::paused) {
      check_interrupt();
      std::this_thread::sleep_for(follow_interval);
      now = job.look();
    }
    while (job.has_news()) {  // all of one that was over before
      check_interrupt();
      now = job.look();
    }
    return report(now, cluster.flags(), job.has_chats() ? " --chat" : "", as_json);
  } catch (const interrupted&) {
    write_error(fmt::format("\ntroupe: {0} goes on: troupe jobs follow {0}{1} shows it, troupe cancel {0}{1} ends it\n",
                            id, cluster.flags()));
    throw;
  }
}

int train_in_cluster(const cluster_training& options) {
  const std::string id = "ftjob-" + random_hex(24);
  training_spec spec = options.spec;
  spec.data_name = options.data_name.empty() ? file_name_of(options.data) : options.data_name;
  if (!options.validation.empty()) spec.validation_name = file_name_of(options.validation);
  const std::string asked = to_json(spec);
  (void)read_training_spec(asked, "the fine-tune");  // as the head will, but before the data is on its way
  json arguments{{"id", id}, {"options", json::parse(asked)}};
  json made;
  sent_file data(options.data);  // both can be read, before much is sent of one of them
  std::optional<sent_file> validation;
  if (spec.has_validation()) validation.emplace(options.validation);
  cluster_client cluster(options.cluster);
  {
    const interrupt_guard guard;
    arguments["data_sha256"] = send_file(cluster, id, "data", data, spec.data_name);
    if (validation)
      arguments["validation_sha256"] = send_file(cluster, id, "validation", *validation, spec.validation_name);
    made = cluster.command("train.create", arguments);
  }
  if (made.value("trainers", 1) == 0)
    write_error("troupe: no trainer is there yet: the job waits for a node with the role \"trainer\"\n");
  if (!options.json) print(id + "\n");
  if (options.follow) return follow_training(cluster, id, options.json);
  if (options.json) print_json(made);
  return 0;
}

}  // namespace troupe
