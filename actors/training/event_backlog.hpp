#pragma once
#include <string>
#include <vector>

namespace troupe {

struct noted_event {
  std::string kind, text;
};

/// A job's events that the journal does not have yet. They are written in one transaction at a time; those that come
/// meanwhile go together into the next one.
class event_backlog {
 public:
  /// If many wait (the disk may be full for days), the oldest point of the loss curve is dropped.
  void note(std::string kind, std::string text);
  /// All that wait, to be written until written() is called; none while earlier ones are.
  std::vector<noted_event> begin_writing();
  void written() { is_writing_ = false; }
  /// All that wait, and a last message: for the transaction that ends the job.
  std::vector<noted_event> take_with(std::string message);

 private:
  std::vector<noted_event> waiting_;
  bool is_writing_ = false;
};

}  // namespace troupe
