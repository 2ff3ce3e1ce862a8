// A test as the head that a client speaks to.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "actors/wire.hpp"

namespace troupe::test {

/// Says hello to everybody, answers other commands as the test says (it refuses by what that throws), and keeps what it
/// is asked.
class played_head {
 public:
  using answering = std::function<nlohmann::ordered_json(const client_command&)>;

  explicit played_head(answering answers = {});
  ~played_head() { links_.stop(); }

  std::string endpoint() const { return links_.endpoint(); }
  /// The next request; throws if none comes.
  client_request asked();
  void say(client_text what);
  /// Answers the next request with this one text, and returns it.
  client_request answer(const std::string& text);
  /// The arguments of all commands of that name so far.
  std::vector<nlohmann::ordered_json> commanded(const std::string& name) const;

  /// What hello says beside the rest.
  void say_in_hello(const nlohmann::ordered_json& more);

  /// As after a while in which it could not reach the client.
  void give_link_up();
  void come_again();

 private:
  void take(const incoming<client_command>& in);

  const answering answers_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  nlohmann::ordered_json hello_ = {{"instance", "first"}};
  link_id link_ = no_link;
  std::deque<client_request> asked_;
  std::vector<client_command> commands_;
  wire links_;
};

}  // namespace troupe::test
