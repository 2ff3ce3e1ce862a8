// What a gate's eight bytes of shared memory say.
#pragma once
#include <cstdint>
#include <cstring>

namespace cuda_host {

class gate_state {
 public:
  static constexpr int most = (1 << 20) - 1;  ///< arrivals, and bytes that are on their way, as on a device

  explicit gate_state(int arrivals)
      : arrivals_(static_cast<std::uint64_t>(arrivals)), missing_(arrivals_), odd_(0), mark_(set_mark), bytes_(0) {}
  static gate_state at(const void* place) {
    gate_state read(0);
    std::memcpy(&read, place, sizeof(read));
    return read;
  }
  void put(void* place) const { std::memcpy(place, this, sizeof(*this)); }

  bool is_set() const { return mark_ == set_mark; }
  /// The phase of that parity is over: before the first one an odd one is.
  bool is_past(bool odd) const { return odd != (odd_ == 1); }
  bool is_between_phases() const { return missing_ == arrivals_ && bytes_ == 0; }

  // Each returns what is wrong, or null.

  const char* arrive(int bytes) {
    if (missing_ == 0) return "more arrivals at a gate than it expects";
    --missing_;
    return count(bytes);
  }
  const char* receive(int bytes) { return count(-bytes); }

 private:
  /// Copies may bring bytes before the arrival that expects them.
  const char* count(int bytes) {
    const std::int64_t now = bytes_ + bytes;
    if (now < -most || now > most) return "more bytes on their way to a gate than it can count";
    bytes_ = now;
    if (missing_ > 0 || now > 0) return nullptr;
    if (now < 0) return "more bytes come to a gate than it expects";
    missing_ = arrivals_;
    odd_ ^= 1;
    return nullptr;
  }

  static constexpr std::uint64_t set_mark = 2;  // fresh memory has 3 there
  std::uint64_t arrivals_ : 20, missing_ : 20, odd_ : 1, mark_ : 2;
  std::int64_t bytes_ : 21;
};
static_assert(sizeof(gate_state) == 8);

}  // namespace cuda_host
