#include "cli/interrupt.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include "base/error.hpp"

namespace troupe {
namespace {

std::atomic<int> guards{0};
std::atomic<int> pending{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use nothing else");

std::atomic<bool> is_on_terminal{false};
std::atomic<int> descriptor{-1};

void signal_descriptor() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor.load(), &one, sizeof one);
}

void note(int signal) {
  const int error_of_who_is_interrupted = errno;
  pending.store(signal);
  signal_descriptor();
  errno = error_of_who_is_interrupted;
}

/// Not before somebody wants it: processes that fork would share it.
int open_descriptor() {
  descriptor.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (descriptor.load() < 0) refuse("no more files can be opened: raise the limit (ulimit -n)");
  if (is_interrupted()) signal_descriptor();
  return descriptor.load();
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
  static const int opened = open_descriptor();
  return opened;
}

bool take_interrupt() {
  return pending.exchange(0) != 0;
}

}  // namespace troupe
