// Lets tests wait for what happens elsewhere, with a deadline.
#pragma once
#include <algorithm>
#include <chrono>
#include <thread>

namespace troupe::test {

/// Whether a condition becomes true within `longest`. After two milliseconds most of the time is left to what is waited
/// for, and to other tests; no answer comes much later for it.
template <class Condition>
bool is_soon(const Condition& holds, std::chrono::milliseconds longest = std::chrono::seconds(10)) {
  using namespace std::chrono_literals;
  using clock = std::chrono::steady_clock;
  for (const auto begun = clock::now();;) {
    const auto asked = clock::now();
    if (holds()) return true;
    const auto now = clock::now();
    if (now - begun > longest) return false;
    if (now - begun < 2ms)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::clamp<clock::duration>(9 * (now - asked), 1ms, 50ms));
  }
}

}  // namespace troupe::test
