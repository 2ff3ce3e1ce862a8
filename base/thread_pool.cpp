#include "base/thread_pool.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <sched.h>

#include "base/error.hpp"

namespace troupe {
namespace {

using clock = std::chrono::steady_clock;
constexpr auto spin_time = std::chrono::microseconds(50);

// Where a ticket has its parts: the next task in its lowest bits, then the task count, then the generation.
constexpr int task_bits = 20, generation_shift = 2 * task_bits;
constexpr std::uint64_t task_mask = (std::uint64_t{1} << task_bits) - 1;
constexpr int most_tasks = static_cast<int>(task_mask);

std::uint64_t make_ticket(std::uint64_t generation, int tasks) {
  return generation << generation_shift | static_cast<std::uint64_t>(tasks) << task_bits;
}
std::uint64_t task_count(std::uint64_t ticket) {
  return ticket >> task_bits & task_mask;
}
std::uint64_t next_task(std::uint64_t ticket) {
  return ticket & task_mask;
}
bool exhausted(std::uint64_t ticket) {
  return next_task(ticket) >= task_count(ticket);
}

/// Spins until `ready()` or the spin time is over; true when ready.
template <class Ready>
bool spin(Ready ready) {
  const auto limit = clock::now() + spin_time;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
      __builtin_ia32_pause();
    }
  } while (clock::now() < limit);
  return ready();
}

}  // namespace

thread_pool::thread_pool(int threads) {
  try {
    for (int i = 1; i < threads; ++i) helpers_.emplace_back([this, i] { help(i); });
  } catch (const std::exception& fault) {
    const std::size_t started = helpers_.size();
    stop();
    refuse(
        "{} threads: the system gave {} of them ({}): ask for fewer, or for more memory or processes (ulimit -v, -u)",
        threads, started + 1, fault.what());
  }
}

thread_pool::~thread_pool() {
  stop();
}

void thread_pool::stop() {
  stopping_ = true;
  ticket_ += make_ticket(1, 0);  // a new generation wakes the parked
  ticket_.notify_all();
  for (auto& helper : helpers_) helper.join();
  helpers_.clear();
}

void thread_pool::run_job(int count, job_function function, void* context) {
  function_ = function;
  context_ = context;
  for (int first = 0; first < count;) {
    const int part = std::min(count - first, most_tasks);
    run_part(first, part);
    first += part;
  }
}

void thread_pool::run_part(int first, int count) {
  first_ = first;
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t generation = (ticket_.load(std::memory_order_relaxed) >> generation_shift) + 1;
  ticket_.store(make_ticket(generation, count), std::memory_order_release);
  ticket_.notify_all();
  while (take_one(0)) {
  }
  const auto finished = [&] { return done_.load(std::memory_order_acquire) == count; };
  while (!spin(finished)) std::this_thread::yield();
  if (fault_) std::rethrow_exception(std::exchange(fault_, nullptr));
}

bool thread_pool::take_one(int thread) {
  std::uint64_t seen = ticket_.load(std::memory_order_acquire);
  do {
    if (exhausted(seen)) return false;
  } while (!ticket_.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire));
  try {
    function_(context_, first_ + static_cast<int>(next_task(seen)), thread);
  } catch (...) {
    const std::lock_guard lock(fault_mutex_);
    fault_ = std::current_exception();
  }
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void thread_pool::help(int thread) {
  while (!stopping_) {
    if (take_one(thread)) continue;
    const auto has_work = [&] { return !exhausted(ticket_.load(std::memory_order_relaxed)) || stopping_; };
    if (spin(has_work)) continue;
    const std::uint64_t seen = ticket_.load(std::memory_order_acquire);
    if (exhausted(seen) && !stopping_) ticket_.wait(seen);
  }
}

void require_threads(int count) {
  try {
    const thread_pool tried(count + 1);
  } catch (const input_error&) {
    throw std::runtime_error(fmt::format(
        "the system gives this process fewer than {} threads: raise its limit of processes (ulimit -u, or pids "
        "of its container)",
        count));
  }
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace troupe
