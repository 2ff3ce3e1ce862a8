#include <cuda_host/blocks.hpp>
#include <cuda_host/fibers.hpp>
#include <cuda_host/gates.hpp>
#include <cuda_host/stores.hpp>

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
  std::size_t first_fiber = 0;
  std::uint64_t round = 0;
  // Of two rounds: who is late still reads one while others fill the next.
  std::byte shown[2][warp_lanes * lane_bytes];
};

/// A copy to one block, which tells a gate of its own.
struct late_copy {
  block_state* in;
  std::byte *to, *gate;
  int bytes;
  std::function<void(std::byte* to)> copy;
};

index3 place_in(extent3 all, std::size_t number) {
  return {static_cast<unsigned>(number % all.x), static_cast<unsigned>(number / all.x % all.y),
          static_cast<unsigned>(number / all.x / all.y)};
}

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
  block_state* in = nullptr;
  warp* of = nullptr;
  int lane = 0;
  bool ended = false;
  const std::uint64_t* waits_for = nullptr;  // runs on when this counter has passed…
  std::uint64_t passed = 0;                  // …this
  const void* gate = nullptr;                // or when this gate's phase is past
  bool odd = false;
  std::deque<std::vector<copy_order>> copies{{}};
  late_stores stores;

  bool can_run() const {
    return !ended && (!waits_for || *waits_for > passed) && (!gate || gate_state::at(gate).is_past(odd));
  }
};

/// Runs the blocks of a cluster at the same time, and clusters one after another.
class cluster_runner {
 public:
  void set_order(unsigned order) {
    order_ = order;
    random_.seed(order);
  }

  void run(const grid_shape& shape, const std::function<void()>& kernel) {
    const extent3 grid = shape.grid, cluster = shape.cluster;
    if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
      throw std::logic_error("a grid that is no multiple of its clusters");
    kernel_ = &kernel;
    blockDim = {shape.block.x, shape.block.y, shape.block.z};
    blocks_.clear();
    for (std::size_t i = 0; i < cluster.count(); ++i) blocks_.emplace_back(shape.dynamic_bytes);
    const extent3 clusters(grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z);
    in_order(clusters.count(), [&](std::size_t number) {
      prepare(place_in(clusters, number), cluster, shape.block);
      run_cluster();
    });
  }

  void block_barrier() { meet(block().barrier); }
  void cluster_barrier() { meet(barrier_); }

  const std::byte* exchange(const char* what, const void* mine, std::size_t bytes) {
    warp& w = *current_->of;
    if (w.arrived == 0) w.what = what;
    if (w.what != what && std::strcmp(w.what, what) != 0)
      fail(std::string("lanes of a warp part ways: ") + w.what + " and " + what);
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
    if (reinterpret_cast<std::uintptr_t>(place) % bytes != 0) fail(std::string(what) + " is not aligned");
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
  block_state& block() { return *current_->in; }

  void* place_in_block(const void* shared, std::size_t bytes, int rank) {
    auto* const here = static_cast<std::byte*>(const_cast<void*>(shared));
    if (rank == block().rank) return here;
    if (rank < 0 || rank >= static_cast<int>(blocks_.size()))
      fail("no block has this rank");
    else if (!block().dynamic.has(shared, bytes))
      fail("what another block is to have lies outside of dynamic shared memory");
    else if (block_state& other = blocks_[static_cast<std::size_t>(rank)]; other.alive == 0)
      fail("a block of the cluster has ended whose memory another one needs");
    else
      return other.dynamic.data() + (here - block().dynamic.data());
    return here;
  }

  void set_gate(void* gate, int arrivals) {
    demand_aligned("a gate", gate, sizeof(gate_state));
    if (arrivals < 1 || arrivals > gate_state::most) return fail("a gate expects too few or too many arrivals");
    gate_state(arrivals).put(gate);
    block().gates.push_back(gate);
  }
  void arrive(void* gate, int bytes) {
    change(gate, [&](gate_state& g) { return g.arrive(bytes); });
  }
  void wait_at(const void* gate, bool odd) {
    change(const_cast<void*>(gate), [](gate_state&) { return nullptr; });
    current_->gate = gate;
    current_->odd = odd;
    if (!fault_.empty() || !current_->can_run()) go_on(current_->at, scheduler_);
    current_->gate = nullptr;
  }

  void store(const shared_store& order) {
    if (order_ % 2 == 1)
      order.store(order.from);
    else
      current_->stores.start(order);
  }

  void copy(const cluster_copy& order) {
    for (int rank = 0; order.ranks >> rank != 0; ++rank) {
      if ((order.ranks >> rank & 1) == 0) continue;
      auto* to = static_cast<std::byte*>(place_in_block(order.to, order.bytes, rank));
      auto* gate = static_cast<std::byte*>(place_in_block(order.gate, sizeof(gate_state), rank));
      if (!fault_.empty()) return;
      const late_copy copy{&blocks_[static_cast<std::size_t>(rank)], to, gate, static_cast<int>(order.bytes),
                           order.copy};
      if (order_ % 2 == 1)
        land(copy);
      else
        late_.push_back(copy);
    }
  }

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

  void prepare(index3 cluster, extent3 blocks, extent3 block) {
    const std::size_t count = block.count(), block_warps = (count + warp_lanes - 1) / warp_lanes;
    while (fibers_.size() < count * blocks_.size()) fibers_.push_back(std::make_unique<fiber>());
    warps_.clear();
    warps_.resize(block_warps * blocks_.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const index3 place = place_in(blocks, b);
      blocks_[b].index = {cluster.x * blocks.x + place.x, cluster.y * blocks.y + place.y,
                          cluster.z * blocks.z + place.z};
      blocks_[b].rank = static_cast<int>(b);
      blocks_[b].alive = count;
      blocks_[b].barrier.arrived = 0;
      for (std::size_t i = 0; i < count; ++i) {
        warp& of = warps_[b * block_warps + i / warp_lanes];
        if (i % warp_lanes == 0) of.first_fiber = b * count + i;
        prepare(*fibers_[b * count + i], blocks_[b], of, place_in(block, i));
      }
    }
    alive_ = count * blocks_.size();
    barrier_.arrived = 0;
    late_.clear();
  }

  void prepare(fiber& f, block_state& in, warp& of, index3 index) {
    f.index = index;
    f.in = &in;
    f.of = &of;
    f.lane = of.lanes++;
    f.waits_for = nullptr;
    f.gate = nullptr;
    f.copies.resize(1);
    f.copies.front().clear();
    f.stores.forget();
    // One that ended waits in `enter` for its next kernel; another is new, or was left where its block failed.
    if (!f.ended) f.at.start_at(&cluster_runner::enter, f.stack.get());
    f.ended = false;
  }

  void run_cluster() {
    while (alive_ > 0) {
      bool moved = false;
      in_order(warps_.size(), [&](std::size_t w) {
        while (run_warp(w)) moved = true;
      });
      moved |= open_barriers();
      if (!moved && !land_one()) throw std::logic_error("the threads of a block wait for each other");
    }
  }

  bool open_barriers() {
    bool any = barrier_.opens(alive_);
    for (block_state& block : blocks_) any |= block.barrier.opens(block.alive);
    return any;
  }

  /// In no order: a device has none either.
  bool land_one() {
    if (late_.empty()) return false;
    if (order_ > 0) std::swap(late_.front(), late_[random_() % late_.size()]);
    const late_copy copy = std::move(late_.front());
    late_.pop_front();
    land(copy);
    throw_fault();
    return true;
  }

  void land(const late_copy& copy) {
    copy.copy(copy.to);
    change(copy.gate, [&](gate_state& g) { return g.receive(copy.bytes); });
  }

  /// `with(its state)` returns what is wrong, or null.
  template <class Change>
  void change(void* gate, Change with) {
    demand_aligned("a gate", gate, sizeof(gate_state));
    gate_state state = gate_state::at(gate);
    const char* wrong = state.is_set() ? with(state) : "a gate that nobody has set";
    if (wrong) return fail(wrong);
    state.put(gate);
  }

  /// What others may not need any more is forgotten.
  void end_thread() {
    if (!current_->stores.end()) fail("a thread ends whose stores may still need shared memory");
    current_->ended = true;
    --alive_;
    block_state& ended = block();
    if (--ended.alive > 0) return;
    for (const late_copy& copy : late_)
      if (copy.in == &ended) fail("a block ends to which a copy is on its way");
    for (const void* gate : ended.gates)
      if (!gate_state::at(gate).is_between_phases()) fail("a block ends whose gate has had some arrivals, or bytes");
    ended.gates.clear();
    ended.dynamic.forget();
  }

  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  void throw_fault() {
    if (!fault_.empty()) throw std::logic_error(std::exchange(fault_, {}));
  }

  /// Every lane that can, once; false: none can. A warp runs as far ahead of the others as barriers let it.
  bool run_warp(std::size_t w) {
    bool moved = false;
    in_order(static_cast<std::size_t>(warps_[w].lanes), [&](std::size_t lane) {
      fiber& f = *fibers_[warps_[w].first_fiber + lane];
      if (!f.can_run()) return;
      moved = true;
      resume(f);
      throw_fault();
    });
    return moved;
  }

  void resume(fiber& f) {
    current_ = &f;
    threadIdx = f.index;
    blockIdx = f.in->index;
    f.waits_for = nullptr;
    go_on(scheduler_, f.at);
  }

  void meet(barrier_state& barrier) {
    ++barrier.arrived;
    wait_for(barrier.round);
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
  std::vector<block_state> blocks_;
  std::size_t alive_ = 0;  // threads of all blocks
  barrier_state barrier_;
  std::deque<late_copy> late_;
  std::string fault_;
};

thread_local cluster_runner runner;

void cluster_runner::enter() {
  for (;;) {
    (*runner.kernel_)();
    runner.end_thread();
    go_on(runner.current_->at, runner.scheduler_);
  }
}

}  // namespace

void set_order(unsigned order) {
  runner.set_order(order);
}

void run_grid(const grid_shape& shape, const std::function<void()>& kernel) {
  runner.run(shape, kernel);
}

std::byte* dynamic_memory() {
  return runner.block().dynamic.data();
}

void block_barrier() {
  runner.block_barrier();
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

int block_rank() {
  return runner.block().rank;
}

void cluster_barrier() {
  runner.cluster_barrier();
}

void* place_in_block(const void* shared, int rank) {
  return runner.place_in_block(shared, 1, rank);
}

void set_gate(void* gate, int arrivals) {
  runner.set_gate(gate, arrivals);
}

void arrive_at_gate(void* gate, int bytes) {
  runner.arrive(gate, bytes);
}

void wait_at_gate(const void* gate, bool odd) {
  runner.wait_at(gate, odd);
}

void start_cluster_copy(const cluster_copy& order) {
  runner.copy(order);
}

void start_store(const shared_store& order) {
  runner.store(order);
}

void close_store_group() {
  runner.current().stores.close_group();
}

void wait_until_stores_are_read() {
  runner.current().stores.wait_until_read();
}

void wait_until_stored() {
  runner.current().stores.wait_until_stored();
}

}  // namespace cuda_host
