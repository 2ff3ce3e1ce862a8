// A few processes (or threads) that hold parts of one thing and put them together: the ranks.
//
// Goals
// - The same result on every rank, to the last bit, whatever the timing: sums are made in the order of ranks.
// - Never a hang: every call ends within its time-out, by the result or by a collective_failure that names a peer.
// - One small set of calls over any way for bytes to travel: a backend is one function, `exchange`.
// Non-goals: groups of many ranks (everyone sends to everyone), overlapping calls, going on after a failure.
//
// All ranks make the same calls in the same order, each from one thread at a time.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

/// The ranks can no longer agree: one is gone, silent or out of step. Every later call fails too.
class collective_failure : public std::runtime_error {
 public:
  explicit collective_failure(const std::string& what, std::optional<int> peer = {})
      : std::runtime_error(what), peer_(peer) {}

  /// The rank that this one does not reach; none: it is not known, or that is not what went wrong.
  std::optional<int> peer() const { return peer_; }

 private:
  std::optional<int> peer_;
};

class collective {
 public:
  virtual ~collective() = default;
  collective(const collective&) = delete;
  collective& operator=(const collective&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  /// Part r of `data`, from ends[r - 1] to ends[r], is rank r's own; afterwards everyone has all parts.
  void all_gather(std::span<std::byte> data, std::span<const std::size_t> ends);
  /// The same with equal parts.
  void all_gather(std::span<std::byte> data);
  /// The same, but only `root` has all parts afterwards.
  void gather(std::span<std::byte> data, std::span<const std::size_t> ends, int root);
  /// Everyone has root's `data` afterwards.
  void broadcast(std::span<std::byte> data, int root);
  /// Everyone has ((rank 0 + rank 1) + rank 2) + … afterwards.
  void all_reduce_sum(std::span<float> data);

  /// While a rank is busy computing for the others, they keep hearing that it is alive, however long that takes (gloo;
  /// with other backends time-outs count from the call). The silence of a rank that is not busy does not matter: nobody
  /// waits for it.
  virtual void set_busy(bool) {}
  /// The data of gathers and broadcasts may lie in the memory of the rank's GPU, where nothing may be writing it any
  /// more.
  virtual bool takes_device_memory() const { return false; }
  /// From any thread: every later call fails at once. So does the call under way, with gloo at the latest by its
  /// time-out.
  virtual void interrupt() noexcept = 0;

 protected:
  collective(int rank, int size);

  struct transfer {
    int peer;
    std::span<std::byte> bytes;
  };
  /// Carries out all of them, in any order, or throws collective_failure. No transfer is empty.
  virtual void exchange(std::span<const transfer> sends, std::span<const transfer> receives) = 0;

 private:
  void carry_out();
  void send(int peer, std::span<std::byte> bytes);
  void receive(int peer, std::span<std::byte> bytes);

  int rank_, size_;
  bool failed_ = false;
  std::vector<transfer> sends_, receives_;  ///< of the call being made
  std::vector<std::byte> slices_;           ///< every rank's values of the slice that this rank adds up
};

}  // namespace troupe
