#include "actors/http/key_limits.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr double minute = 60e9;                     // in nanoseconds
constexpr duration soon = std::chrono::seconds(1);  // a request in progress may end at any time

std::int64_t whole(double left) {
  return static_cast<std::int64_t>(std::max(0.0, std::floor(left + 1e-9)));
}

}  // namespace

namespace detail {

void refilled_bucket::refill(std::int64_t per_minute, instant now) {
  const auto rate = static_cast<double>(per_minute);
  if (rate != per_minute_) {
    left_ += rate - per_minute_;  // what was used stays counted
    per_minute_ = rate;
  } else {
    left_ += rate * static_cast<double>((now - at_).count()) / minute;
  }
  left_ = std::min(left_, rate);
  at_ = now;
}

duration refilled_bucket::until(double wanted) const {
  if (left_ >= wanted || per_minute_ <= 0) return {};
  return duration(static_cast<std::int64_t>(std::ceil((wanted - left_) * minute / per_minute_)));
}

}  // namespace detail

result<key_limits::ticket, key_limits::refused> key_limits::begin(const std::string& key, const rate_limits& limits) {
  const std::lock_guard lock(accounts_->mutex);
  account& of = accounts_->of[key];
  const standing now = look(of, limits, clock_.now());
  if (limits.concurrent > 0 && of.running >= limits.concurrent) return refused{"concurrent", soon, now};
  if (limits.requests_per_minute > 0 && now.requests_left < 1) return refused{"requests", of.requests.until(1), now};
  if (limits.tokens_per_minute > 0 && now.tokens_left < 1) return refused{"tokens", of.tokens.until(1), now};
  of.requests.take(1);
  ++of.running;
  return ticket(std::shared_ptr<account>(&of, [all = accounts_](account* which) {
    const std::lock_guard ending(all->mutex);
    --which->running;
  }));
}

void key_limits::use_tokens(const std::string& key, std::int64_t tokens) {
  const std::lock_guard lock(accounts_->mutex);
  const auto found = accounts_->of.find(key);
  if (found != accounts_->of.end()) found->second.tokens.take(tokens);
}

key_limits::standing key_limits::standing_of(const std::string& key, const rate_limits& limits) {
  const std::lock_guard lock(accounts_->mutex);
  return look(accounts_->of[key], limits, clock_.now());
}

key_limits::standing key_limits::look(account& of, const rate_limits& limits, instant now) const {
  of.requests.refill(limits.requests_per_minute, now);
  of.tokens.refill(limits.tokens_per_minute, now);
  return {limits, whole(of.requests.left()), whole(of.tokens.left()), of.requests.until_full(), of.tokens.until_full()};
}

}  // namespace troupe
