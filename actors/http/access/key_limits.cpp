#include "actors/http/access/key_limits.hpp"

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

void refilled_bucket::refill(instant now) {
  left_ = std::min(left_ + per_minute_ * static_cast<double>((now - at_).count()) / minute, per_minute_);
  at_ = now;
}

void refilled_bucket::limit_to(std::int64_t per_minute) {
  const auto rate = static_cast<double>(per_minute);
  if (rate == per_minute_) return;
  left_ = per_minute_ > 0 && rate > 0 ? left_ + rate - per_minute_ : rate;  // what was used stays counted
  per_minute_ = rate;
}

duration refilled_bucket::until(double wanted) const {
  if (left_ >= wanted || per_minute_ <= 0) return {};
  return duration(static_cast<std::int64_t>(std::ceil((wanted - left_) * minute / per_minute_)));
}

}  // namespace detail

result<key_limits::ticket, key_limits::refused> key_limits::begin(const std::string& key, const rate_limits& limits) {
  const std::lock_guard lock(accounts_->mutex);
  account& own = accounts_->by_key[key];
  refill(own);
  own.requests.limit_to(limits.requests_per_minute);
  own.tokens.limit_to(limits.tokens_per_minute);
  const standing left = own.left();
  if (limits.concurrent > 0 && own.running >= limits.concurrent) return refused{limit::concurrent, soon, left};
  if (limits.requests_per_minute > 0 && left.requests.left < 1)
    return refused{limit::requests, own.requests.until(1), left};
  if (limits.tokens_per_minute > 0 && left.tokens.left < 1) return refused{limit::tokens, own.tokens.until(1), left};
  own.requests.take(1);
  ++own.running;
  return ticket(std::shared_ptr<account>(&own, [all = accounts_](account* ended) {
    const std::lock_guard ending(all->mutex);
    --ended->running;
  }));
}

void key_limits::use_tokens(const std::string& key, std::int64_t tokens) {
  const std::lock_guard lock(accounts_->mutex);
  const auto found = accounts_->by_key.find(key);
  if (found != accounts_->by_key.end()) found->second.tokens.take(tokens);
}

key_limits::standing key_limits::standing_of(const std::string& key) {
  const std::lock_guard lock(accounts_->mutex);
  account& own = accounts_->by_key[key];
  refill(own);
  return own.left();
}

void key_limits::refill(account& own) {
  const instant now = clock_.now();
  own.requests.refill(now);
  own.tokens.refill(now);
}

key_limits::standing key_limits::account::left() const {
  const auto allowed = [](const detail::refilled_bucket& bucket) {
    return allowance{
        .per_minute = bucket.per_minute(), .left = whole(bucket.left()), .until_full = bucket.until_full()};
  };
  return {.requests = allowed(requests), .tokens = allowed(tokens)};
}

}  // namespace troupe
