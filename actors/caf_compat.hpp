// The part of CAF that Troupe uses, under names that fit version 0.17 and later ones. The only place that knows which
// version it is.
//
// - An interface is a list of messages, one struct each, all one-way: `actor_of<run_step, drop_adapter>`.
// - An actor is a state struct with a `handle`, a `name`, `make_behavior()`, and a constructor that takes the actor's
//   own pointer and its parts: one struct that names everything it works with. `spawn_state` starts it.
// - An exception that leaves a handler ends the process (actor_failure.hpp).
// - CAF never serializes, prints or copies a message: to other processes they go as frames (wire.hpp).
#pragma once
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "actors/actor_failure.hpp"
#include "actors/messages.hpp"
#include "base/clock.hpp"

namespace troupe {

/// For actors that share so many threads, with one queue of work. CAF's default, work stealing, looks for work a
/// thousand times a second even if there is none.
caf::actor_system_config system_config(std::size_t threads);

/// How many threads actors have of their own (actor_thread::own), those of CAF's own actors among them.
std::size_t own_threads(caf::actor_system& system);

/// An actor's thread ends when its last handle goes. CAF's clock holds handles for delayed messages: drops those, then
/// waits until actors have no more threads of their own than `before`. Returns whether all others have ended in time.
bool await_own_threads(caf::actor_system& system, std::size_t before, duration patience);

template <class... Messages>
using actor_of = caf::typed_actor<caf::reacts_to<Messages>...>;

namespace detail {

/// Holds a state, since CAF needs states that it can make without arguments.
template <class State>
struct state_holder {
  static inline const char* name = State::name;
  std::unique_ptr<State> state;
};

template <class State, class Parts>
typename State::handle::behavior_type start_actor(
    typename State::handle::template stateful_pointer<state_holder<State>> self, Parts parts) {
  self->set_exception_handler(
      [](caf::scheduled_actor*, std::exception_ptr& fault) -> caf::error { end_process_after(State::name, fault); });
  try {
    self->state.state = std::make_unique<State>(self, std::move(parts));
    return self->state.state->make_behavior();
  } catch (...) {
    end_process_after(State::name, std::current_exception());
  }
}

/// Counts actors that have not ended.
class open_ends {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void remove() {
    const std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_all();
  }
  bool wait(duration longest) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, longest, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

/// One message in a mailbox. CAF's own type would bring a dozen ways to print, copy and serialize each message. Nobody
/// calls them, and they were a fifth of the compiler's work for the largest file of actors.
template <class M>
class letter final : public caf::mailbox_element, public caf::empty_type_erased_tuple {
 public:
  explicit letter(M message) : message_(std::move(message)) {}

  caf::type_erased_tuple& content() override { return *this; }
  const caf::type_erased_tuple& content() const override { return *this; }
  caf::message move_content_to_message() override { return {}; }
  caf::message copy_content_to_message() const override { return {}; }

  std::size_t size() const noexcept override { return 1; }
  std::uint32_t type_token() const noexcept override { return caf::make_type_token<M>(); }
  caf::rtti_pair type(std::size_t) const noexcept override { return caf::make_rtti_pair<M>(); }
  const void* get(std::size_t) const noexcept override { return &message_; }
  void* get_mutable(std::size_t) override { return &message_; }

 private:
  M message_;
};

template <class M>
caf::mailbox_element_ptr seal(M message) {
  return caf::mailbox_element_ptr{new letter<M>(std::move(message))};
}

template <class Handle, class M>
constexpr bool understands = caf::response_type_unbox<caf::signatures_of_t<Handle>, caf::detail::type_list<M>>::valid;

}  // namespace detail

/// `own`: for an actor that computes or waits.
enum class actor_thread { shared, own };

template <class State, actor_thread Thread = actor_thread::shared, class Parts>
typename State::handle spawn_state(caf::actor_system& system, Parts parts) {
  constexpr auto options = Thread == actor_thread::own ? caf::detached : caf::no_spawn_options;
  return system.spawn<options>(detail::start_actor<State, Parts>, std::move(parts));
}

/// May be called on any thread; messages of one sender arrive in order. Messages to an actor that has ended are lost
/// silently.
template <class Handle, class M>
requires detail::understands<Handle, M>
void tell(const Handle& to, M message) {
  if (to) to->enqueue(detail::seal(std::move(message)), nullptr);
}

/// Waits until all of them have ended and sent their last messages, at most for the given time. Empty handles count as
/// ended.
template <class... Handles>
bool await_ends(duration longest, const Handles&... actors) {
  const auto open = std::make_shared<detail::open_ends>();
  const auto watch = [&](const auto& actor) {
    if (!actor) return;
    open->add();
    actor->attach_functor([open](const caf::error&) { open->remove(); });
  };
  (watch(actors), ...);
  return open->wait(longest);
}

/// The time by which an actor's tell_after() counts: a simulated one where a simulation runs the actors.
class actor_clock final : public clock {
 public:
  template <class Self>
  explicit actor_clock(Self* self) : time_(&self->home_system().clock()) {}
  instant now() const override { return {std::chrono::duration_cast<duration>(time_->now().time_since_epoch())}; }

 private:
  caf::actor_clock* time_;
};

/// Sends a message to the actor itself, later.
template <class Self, class M>
requires detail::understands<Self, M>
void tell_after(Self* self, duration delay, M message) {
  caf::actor_clock& clock = self->home_system().clock();
  clock.schedule_message(clock.now() + delay, self->ctrl(), detail::seal(std::move(message)));
}

}  // namespace troupe
