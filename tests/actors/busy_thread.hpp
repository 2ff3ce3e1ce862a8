// Lets tests hold long work up.
#pragma once
#include <future>
#include <utility>

#include "actors/task_thread.hpp"

namespace troupe::test {

/// Keeps the thread for long work busy until it may go on.
class busy_thread {
 public:
  explicit busy_thread(task_thread& work) {
    std::promise<void> begun;
    work.run([&begun, until = until_.get_future().share()] {
      begun.set_value();
      until.wait();
    });
    begun.get_future().wait();
  }
  ~busy_thread() { go_on(); }
  void go_on() {
    if (!std::exchange(over_, true)) until_.set_value();
  }

 private:
  std::promise<void> until_;
  bool over_ = false;
};

}  // namespace troupe::test
