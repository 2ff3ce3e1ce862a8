// Mock actors that remember their messages. Tests wait for these with a deadline instead of sleeping.
#pragma once
#include <any>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/interfaces.hpp"
#include "actors/requests/prompting.hpp"
#include "base/to_size.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "tests/base/places.hpp"
#include "tests/base/soon.hpp"
#include "tests/model/formats/fixtures.hpp"
#include "tests/model/tokenizer/letters.hpp"

namespace troupe::test {

using json = nlohmann::ordered_json;

/// What became of a job's lines, in an answer to job.outputs.
inline std::vector<json> outputs_in(const json& answer) {
  std::vector<json> all;
  for (const json& each : answer.at("outputs")) all.push_back(json::parse(each.at("text").get<std::string>()));
  return all;
}

/// Messages of any type in the order in which they came.
class inbox {
 public:
  template <class M>
  void put(M what) {
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(std::make_shared<M>(std::move(what)));
    changed_.notify_all();
  }
  /// Takes the oldest M that is left. Throws if none comes within ten seconds.
  template <class M>
  M take() {
    std::unique_lock lock(mutex_);
    const auto is_m = [](const std::any& each) { return std::any_cast<std::shared_ptr<M>>(&each) != nullptr; };
    auto found = messages_.end();
    const auto look = [&] {
      found = std::find_if(messages_.begin(), messages_.end(), is_m);
      return found != messages_.end();
    };
    if (!changed_.wait_for(lock, std::chrono::seconds(10), look))
      throw std::runtime_error(std::string("no message came: ") + typeid(M).name());
    const auto taken = std::any_cast<std::shared_ptr<M>>(*found);
    messages_.erase(found);
    return std::move(*taken);
  }
  /// How many M have come and were not taken yet.
  template <class M>
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return to_size(std::count_if(messages_.begin(), messages_.end(), [](const std::any& each) {
      return std::any_cast<std::shared_ptr<M>>(&each) != nullptr;
    }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::any> messages_;
};

namespace detail {

template <class Handle>
struct mock_state;

template <class... Messages>
struct mock_state<caf::typed_actor<caf::typed_mpi<caf::detail::type_list<Messages>, caf::output_tuple<void>>...>> {
  using handle = actor_of<Messages...>;
  static constexpr const char* name = "mock";

  mock_state(typename handle::pointer, std::shared_ptr<inbox> to) : heard(std::move(to)) {}
  typename handle::behavior_type make_behavior() {
    return {[this](Messages& what) { heard->put(std::move(what)); }...};
  }

  std::shared_ptr<inbox> heard;
};

}  // namespace detail

/// An actor that has an interface and only remembers messages. Ends with this object.
template <class Handle>
class mock {
 public:
  explicit mock(caf::actor_system& system)
      : heard_(std::make_shared<inbox>()), handle_(spawn_state<detail::mock_state<Handle>>(system, heard_)) {}
  ~mock() { caf::anon_send_exit(handle_, caf::exit_reason::user_shutdown); }
  mock(const mock&) = delete;
  mock& operator=(const mock&) = delete;

  const Handle& handle() const { return handle_; }
  template <class M>
  M take() {
    return heard_->take<M>();
  }
  template <class M>
  std::size_t count() {
    return heard_->count<M>();
  }

 private:
  std::shared_ptr<inbox> heard_;
  Handle handle_;
};

/// Gives an actor a command; where the answer comes.
template <class Handle>
std::shared_ptr<inbox> send_command(const Handle& to, const std::string& name, const json& arguments) {
  const auto answers = std::make_shared<inbox>();
  tell(to,
       command_call{{name, arguments.dump()}, [answers](command_answer answer) { answers->put(std::move(answer)); }});
  return answers;
}

class recording_listener final : public answer_listener {
 public:
  void on_part(answer_part part) override { heard.put(std::move(part)); }
  void on_refused(const request_refused& refused) override { heard.put(refused); }

  inbox heard;
};

/// Configuration and tokenizer of a tiny model whose tokens are letters; it has no weights.
inline std::shared_ptr<const prompting> letters_prompting(const temp_folder& folder, std::int64_t context = 0,
                                                          const std::string& chat_template = {},
                                                          const json& post_processor = nullptr) {
  const auto model = folder.path() / "letters";
  std::filesystem::create_directories(model);
  folder.write("letters/tokenizer.json", letters_tokenizer(post_processor).dump());
  json config{{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  if (!chat_template.empty()) config["chat_template"] = chat_template;
  folder.write("letters/tokenizer_config.json", config.dump());
  return std::make_shared<const prompting>(model, read_hf_config(golden / "llama"), context);
}

inline std::vector<token_id> letters(std::string_view text) {
  std::vector<token_id> tokens;
  for (const char c : text) tokens.push_back(c - ' ');
  return tokens;
}

}  // namespace troupe::test
