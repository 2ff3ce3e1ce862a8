#pragma once
#include <functional>
#include <memory>

namespace troupe::detail {

/// Asks what may take long, as name servers do: each question on a thread of its own, which nobody waits for, since the
/// answer may take longer than whoever wants it lives. So many are asked at a time at most. Thread-safe, but for what
/// is said of begin().
class inquiries {
 public:
  using answer = std::function<void()>;
  using question = std::function<answer()>;

  explicit inquiries(int at_once);

  /// `asked` is called without a lock. So is what it returns, on the same thread, unless end() came before: that is to
  /// see to it that begin() is called again.
  void ask(question asked);
  bool may_begin() const;
  /// Begins with one question if it may. To be called without a lock: where the machine has no more threads, it asks on
  /// this one. The other thread blocks signals as this one does.
  void begin();
  /// Returns when no answer is being taken any more.
  void end();

 private:
  struct desk;
  std::shared_ptr<desk> desk_;  ///< threads have it, too
};

}  // namespace troupe::detail
