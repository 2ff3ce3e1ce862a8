#include "cli/interrupt.hpp"

#include <atomic>

#include <unistd.h>
#include <csignal>

#include "base/wake_signal.hpp"

namespace troupe {
namespace {

std::atomic<int> guards{0};
std::atomic<int> pending{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use nothing else");

std::atomic<bool> is_on_terminal{false};
std::atomic<const wake_signal*> awaited{nullptr};

void note(int signal) {
  pending.store(signal);
  if (const wake_signal* const somebody = awaited.load()) somebody->give();
}

/// Not before somebody wants it: processes that fork would share it. It stays for handlers that run until the end.
const wake_signal& make_awaited() {
  const auto* const made = new wake_signal;
  awaited.store(made);
  if (is_interrupted()) made->give();
  return *made;
}

extern "C" void on_signal(int signal) {
  if (guards.load() != 0) return note(signal);
  if (signal == SIGINT && is_on_terminal.load()) {  // behind the ^C that the terminal shows
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, "\n", 1);
  }
  ::_exit(128 + signal);
}

}  // namespace

void handle_interrupts() {
  is_on_terminal.store(::isatty(STDERR_FILENO) == 1);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction before {};
  ::sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN)
    ::sigaction(SIGHUP, &action, nullptr);  // nohup: it is to go on without its terminal
}

interrupt_guard::interrupt_guard() {
  guards.fetch_add(1);
}
interrupt_guard::~interrupt_guard() {
  guards.fetch_sub(1);
}

void check_interrupt() {
  if (const int signal = pending.load()) throw interrupted(signal);
}

bool is_interrupted() {
  return pending.load() != 0;
}

int interrupt_descriptor() {
  static const wake_signal& made = make_awaited();
  return made.descriptor();
}

bool take_ctrl_c() {
  int wanted = SIGINT;
  return pending.compare_exchange_strong(wanted, 0);
}

}  // namespace troupe
