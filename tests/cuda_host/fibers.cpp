#include <cuda_host/fibers.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ucontext.h>

namespace cuda_host {
namespace {

constexpr std::size_t stack_bytes = 256 << 10;

struct copy_order {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct warp {
  const char* what = nullptr;  // all lanes do the same thing
  int arrived = 0, lanes = 0;
  std::uint64_t round = 0;
  // Of two rounds: who is late still reads one while others fill the next.
  std::byte shown[2][warp_lanes * lane_bytes];
};

/// A place to go on from. swapcontext asks the kernel each time; where no sanitizer watches the jumps, they do without.
struct context {
  ucontext_t first;
  void* later[5];  // what __builtin_setjmp asks for
  bool started = true;

  void start_at(void (*function)(), std::byte* stack) {
    ::getcontext(&first);
    first.uc_stack = {stack, 0, stack_bytes};
    first.uc_link = nullptr;
    ::makecontext(&first, function, 0);
    started = false;
  }
};

[[gnu::noinline]] void leave_for(context& to) {
  __builtin_longjmp(to.later, 1);
}

[[gnu::noinline]] void go_on(context& from, context& to) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  ::swapcontext(&from.first, &to.first);
#else
  if (__builtin_setjmp(from.later) != 0) return;
  if (to.started) leave_for(to);
  to.started = true;
  ::setcontext(&to.first);
#endif
}

struct fiber {
  context at;
  std::unique_ptr<std::byte[]> stack{new std::byte[stack_bytes]};
  index3 index;
  warp* of = nullptr;
  int lane = 0;
  bool ended = false;
  const std::uint64_t* waits_for = nullptr;  // runs on when this counter has passed…
  std::uint64_t passed = 0;                  // …this
  std::deque<std::vector<copy_order>> copies{{}};

  bool can_run() const { return !ended && (!waits_for || *waits_for > passed); }
};

class block_runner {
 public:
  void set_order(unsigned order) {
    order_ = order;
    random_.seed(order);
  }

  void run(extent3 grid, extent3 block, const std::function<void()>& kernel) {
    kernel_ = &kernel;
    in_order(grid.count(), [&](std::size_t number) {
      blockIdx = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                  static_cast<unsigned>(number / grid.x / grid.y)};
      run_block(block);
    });
  }

  void barrier() {
    ++arrived_;
    wait_for(barrier_round_);
  }

  const std::byte* exchange(const char* what, const void* mine, std::size_t bytes) {
    warp& w = *current_->of;
    if (w.arrived == 0) w.what = what;
    if (w.what != what && std::strcmp(w.what, what) != 0)
      fault_ = std::string("lanes of a warp part ways: ") + w.what + " and " + what;
    std::byte* shown = w.shown[w.round % 2];
    std::memcpy(shown + static_cast<std::size_t>(current_->lane) * lane_bytes, mine, bytes);
    if (++w.arrived < w.lanes) {
      wait_for(w.round);
    } else {
      w.arrived = 0;
      ++w.round;
    }
    return shown;
  }

  void demand_aligned(const char* what, const void* place, std::size_t bytes) {
    if (reinterpret_cast<std::uintptr_t>(place) % bytes != 0) fault_ = std::string(what) + " is not aligned";
  }

  void copy(const copy_order& order) {
    for (const void* place : {static_cast<const void*>(order.to), order.from})
      demand_aligned("a copy into shared memory", place, order.bytes);
    if (order_ % 2 == 1)
      std::memcpy(order.to, order.from, order.bytes);
    else
      current_->copies.back().push_back(order);
  }

  fiber& current() { return *current_; }

 private:
  template <class Visit>
  void in_order(std::size_t count, Visit visit) {
    if (order_ <= 1) {
      for (std::size_t i = 0; i < count; ++i) visit(order_ == 1 ? count - 1 - i : i);
      return;
    }
    std::vector<std::size_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    std::shuffle(numbers.begin(), numbers.end(), random_);
    for (const std::size_t number : numbers) visit(number);
  }

  void prepare(extent3 block) {
    const std::size_t count = block.count();
    while (fibers_.size() < count) fibers_.push_back(std::make_unique<fiber>());
    warps_ = std::vector<warp>((count + warp_lanes - 1) / warp_lanes);
    for (std::size_t i = 0; i < count; ++i) {
      fiber& f = *fibers_[i];
      f.index = {static_cast<unsigned>(i % block.x), static_cast<unsigned>(i / block.x % block.y),
                 static_cast<unsigned>(i / block.x / block.y)};
      f.of = &warps_[i / warp_lanes];
      f.lane = f.of->lanes++;
      f.waits_for = nullptr;
      f.copies.resize(1);
      f.copies.front().clear();
      // One that ended waits in `enter` for its next kernel; another is new, or was left where its block failed.
      if (!f.ended) f.at.start_at(&block_runner::enter, f.stack.get());
      f.ended = false;
    }
    alive_ = count;
    arrived_ = 0;
  }

  void run_block(extent3 block) {
    blockDim = {block.x, block.y, block.z};
    prepare(block);
    while (alive_ > 0) {
      bool moved = false;
      in_order(warps_.size(), [&](std::size_t w) {
        while (run_warp(w)) moved = true;
      });
      if (arrived_ > 0 && arrived_ == alive_) {
        arrived_ = 0;
        ++barrier_round_;
      } else if (!moved) {
        throw std::logic_error("the threads of a block wait for each other");
      }
    }
  }

  /// Every lane that can, once; false: none can. A warp runs as far ahead of the others as barriers let it.
  bool run_warp(std::size_t w) {
    bool moved = false;
    in_order(static_cast<std::size_t>(warps_[w].lanes), [&](std::size_t lane) {
      fiber& f = *fibers_[w * warp_lanes + lane];
      if (!f.can_run()) return;
      moved = true;
      resume(f);
      if (!fault_.empty()) throw std::logic_error(std::exchange(fault_, {}));
    });
    return moved;
  }

  void resume(fiber& f) {
    current_ = &f;
    threadIdx = f.index;
    f.waits_for = nullptr;
    go_on(scheduler_, f.at);
  }

  void wait_for(const std::uint64_t& counter) {
    fiber& f = *current_;
    f.passed = counter;
    f.waits_for = &counter;
    go_on(f.at, scheduler_);
  }

  static void enter();

  unsigned order_ = 0;
  std::mt19937 random_;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<warp> warps_;
  const std::function<void()>* kernel_ = nullptr;
  context scheduler_;
  fiber* current_ = nullptr;
  std::size_t alive_ = 0, arrived_ = 0;
  std::uint64_t barrier_round_ = 0;
  std::string fault_;
};

thread_local block_runner runner;

void block_runner::enter() {
  for (;;) {
    (*runner.kernel_)();
    runner.current_->ended = true;
    --runner.alive_;
    go_on(runner.current_->at, runner.scheduler_);
  }
}

}  // namespace

void set_order(unsigned order) {
  runner.set_order(order);
}

void run_grid(extent3 grid, extent3 block, const std::function<void()>& kernel) {
  runner.run(grid, block, kernel);
}

void block_barrier() {
  runner.barrier();
}

const std::byte* warp_exchange(const char* what, const void* mine, std::size_t bytes) {
  return runner.exchange(what, mine, bytes);
}

void demand_aligned(const char* what, const void* place, std::size_t bytes) {
  runner.demand_aligned(what, place, bytes);
}

void start_copy(void* to, const void* from, std::size_t bytes) {
  runner.copy({to, from, bytes});
}

void close_copy_group() {
  runner.current().copies.emplace_back();
}

void wait_for_copies(std::size_t groups_left) {
  auto& groups = runner.current().copies;
  for (; groups.size() > groups_left + 1; groups.pop_front())
    for (const copy_order& copy : groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
}

}  // namespace cuda_host
