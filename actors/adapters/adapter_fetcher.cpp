#include "actors/adapters/adapter_fetcher.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "actors/adapters/adapter_download.hpp"
#include "actors/adapters/adapter_files.hpp"
#include "actors/command_answers.hpp"
#include "base/error.hpp"
#include "base/last_said.hpp"
#include "model/lora/adapter.hpp"
#include "model/lora/adapter_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class adapter_fetcher_state {
 public:
  using handle = adapter_fetcher_actor;
  static constexpr const char* name = "adapter_fetcher";

  adapter_fetcher_state(handle::pointer, adapter_fetcher_parts parts);
  handle::behavior_type make_behavior();

 private:
  /// An adapter to make ready.
  struct wanted : adapter_contents {
    std::optional<load_adapter> for_stage;  ///< empty: no stage needs it yet, and it is only prepared
    std::uint64_t ticket = 0;               ///< under which it is prepared
  };

  void end_stage();
  void take(wanted order);
  void next();
  std::string place_of(const wanted& order) const;
  std::string without_store(std::string text) const;
  void begin(const wanted& order);
  bool load_stored(const wanted& order);
  bool is_changed(const wanted& order);
  void go_on();
  void take_piece(const adapter_piece& piece);
  void load(const wanted& order);
  template <class Work>
  void attempt(const wanted& order, const Work& work);
  void fail(const wanted& order, const std::string& error, const std::string& outside);
  void hand_over(const wanted& order, std::shared_ptr<const lora_adapter> adapter);

  adapter_fetcher_parts parts_;
  worker_actor worker_;                 ///< set by begin_fetching
  std::optional<stage_layers> layers_;  ///< empty: all layers
  std::deque<wanted> waiting_;
  /// Adapters that were prepared and not asked for yet, newest last. One that does not fit is packed again when it is
  /// asked for, from the files that are here.
  std::deque<std::pair<std::string, std::shared_ptr<const lora_adapter>>> prepared_;
  std::set<std::string> unchanged_;  ///< digests of stored adapters whose files were read and found right
  std::optional<adapter_download> download_;
  wanted downloaded_;  ///< what download_ fetches
  last_said said_;     ///< of adapters that cannot be loaded, by digest: only a load says of which version it is
};

}  // namespace

adapter_fetcher_state::adapter_fetcher_state(handle::pointer, adapter_fetcher_parts parts) : parts_(std::move(parts)) {
  remove_abandoned_downloads(parts_.store);
}

adapter_fetcher_state::handle::behavior_type adapter_fetcher_state::make_behavior() {
  return {
      [this](const begin_fetching& begun) { worker_ = begun.worker; },
      [this](const load_adapter& order) {
        take({contents_of(order), order});
      },
      [this](const prepare_adapter& order) {
        take({contents_of(order), {}, order.ticket});
      },
      [this](const adapter_piece& piece) { take_piece(piece); },
      [this](const stage_layers& layers) { layers_ = layers; },
      [this](stage_ended) { end_stage(); },
      [this](forget_life) {
        end_stage();
        waiting_.clear();
        download_.reset();
      },
  };
}

/// What is being downloaded goes on: the files are the same for all layers, and the next stage may need them.
void adapter_fetcher_state::end_stage() {
  layers_.reset();
  prepared_.clear();  // for layers of that stage
  std::erase_if(waiting_, [](const wanted& order) { return order.for_stage.has_value(); });
}

void adapter_fetcher_state::take(wanted order) {
  waiting_.push_back(std::move(order));
  next();
}

void adapter_fetcher_state::next() {
  while (!download_ && !waiting_.empty()) {
    const wanted order = std::move(waiting_.front());
    waiting_.pop_front();
    begin(order);
  }
}

/// Clients read it, too, who need not know where the state folder is.
std::string adapter_fetcher_state::place_of(const wanted& order) const {
  return fmt::format("the state folder's {}", (parts_.store.filename() / order.sha256).string());
}

/// The same for what names a file there.
std::string adapter_fetcher_state::without_store(std::string text) const {
  const std::string store = parts_.store.string();
  if (const std::size_t at = text.find(store); at != text.npos)
    text.replace(at, store.size(), fmt::format("the state folder's {}", parts_.store.filename().string()));
  return text;
}

void adapter_fetcher_state::begin(const wanted& order) {
  const auto ready =
      std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& each) { return each.first == order.sha256; });
  if (ready != prepared_.end()) return hand_over(order, ready->second);
  attempt(order, [&] {
    check_files(order);
    if (load_stored(order)) return;
    if (!parts_.can_fetch)
      refuse("adapter {}: its files are gone from {}: load its folder again", order.full_name, place_of(order));
    download_.emplace(parts_.store, order);
    downloaded_ = order;
    go_on();
  });
}

/// False where the files are not there, or another process of this host has just removed them.
bool adapter_fetcher_state::load_stored(const wanted& order) {
  const fs::path folder = parts_.store / order.sha256;
  if (!is_complete(folder, order)) return false;
  try {
    if (is_changed(order)) {
      if (!fs::exists(folder / fetched_mark))
        refuse("adapter {}: {} was changed after it was published: remove that folder, and load the adapter again",
               order.full_name, place_of(order));
      fs::remove_all(folder);
      return false;
    }
    load(order);
  } catch (const std::exception&) {
    if (is_complete(folder, order)) throw;
    return false;
  }
  return true;
}

/// Whether the disk holds something else than was published. It is read once, and not at all where the head has just
/// put it there to be prepared.
bool adapter_fetcher_state::is_changed(const wanted& order) {
  const fs::path folder = parts_.store / order.sha256;
  const bool is_new = !order.for_stage && !fs::exists(folder / fetched_mark);
  if (is_new || unchanged_.contains(order.sha256)) return false;
  if (digest_of_adapter(folder) != order.sha256) return true;
  unchanged_.insert(order.sha256);
  return false;
}

/// Asks for the next piece, or loads the adapter.
void adapter_fetcher_state::go_on() {
  if (const auto piece = download_->next()) return tell(parts_.head, *piece);
  download_.reset();
  remove_least_used(parts_.store, parts_.most_stored, downloaded_.sha256);
  load(downloaded_);
}

void adapter_fetcher_state::take_piece(const adapter_piece& piece) {
  if (!download_) return;
  attempt(downloaded_, [&] {
    if (download_->take(piece)) go_on();
  });
  next();
}

void adapter_fetcher_state::load(const wanted& order) {
  const model_config& config = parts_.model->config;
  std::error_code no_mark;
  fs::last_write_time(parts_.store / order.sha256 / fetched_mark, fs::file_time_type::clock::now(), no_mark);
  adapter_file file = read_adapter(parts_.store / order.sha256, config);
  if (layers_) {
    const auto is_elsewhere = [&](const adapter_part& part) {
      return part.layer < layers_->first || part.layer >= layers_->first + layers_->count;
    };
    std::erase_if(file.parts, is_elsewhere);
  }
  const adapter_precision precision = precision_beside(parts_.model->quantization);
  hand_over(order, std::make_shared<const lora_adapter>(file, config.layers, precision));
}

void adapter_fetcher_state::hand_over(const wanted& order, std::shared_ptr<const lora_adapter> adapter) {
  said_.forget(order.sha256);
  std::erase_if(prepared_, [&](const auto& each) { return each.first == order.sha256; });
  if (order.for_stage) return tell(worker_, adapter_ready{*order.for_stage, std::move(adapter), {}});
  prepared_.emplace_back(order.sha256, std::move(adapter));
  const auto bytes = [&] {
    std::size_t sum = 0;
    for (const auto& each : prepared_) sum += each.second->bytes();
    return sum;
  };
  while (bytes() > parts_.most_prepared) prepared_.pop_front();
  tell(parts_.head, adapter_prepared{order.ticket, {}});
}

template <class Work>
void adapter_fetcher_state::attempt(const wanted& order, const Work& work) {
  try {
    work();
  } catch (const write_failure& failure) {
    fail(order, failure.what(), without_path(failure));
  } catch (const std::exception& error) {
    fail(order, error.what(), without_store(error.what()));
  }
}

/// This node's log has all of it. HTTP's clients read the other text, and operators, who learn from it where to look.
void adapter_fetcher_state::fail(const wanted& order, const std::string& error, const std::string& outside) {
  download_.reset();
  const std::string named = fmt::format("adapter {}: ", order.full_name);
  const std::string cause = error.substr(error.starts_with(named) ? named.size() : 0);
  if (said_.is_news(order.sha256, cause))
    parts_.say(fmt::format("adapter {} cannot be loaded here: {}", order.full_name, cause));
  const std::string told = fmt::format("node {}: {}", parts_.node, outside);
  if (order.for_stage) return tell(worker_, adapter_ready{*order.for_stage, nullptr, told});
  tell(parts_.head, adapter_prepared{order.ticket, told});
}

adapter_fetcher_actor spawn_adapter_fetcher(caf::actor_system& system, adapter_fetcher_parts parts) {
  return spawn_state<adapter_fetcher_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
