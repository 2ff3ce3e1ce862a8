// How much each key may ask for: requests and tokens in a minute, requests at a time.
//
// A key saves up at most a minute's worth, which comes back evenly. Tokens, of prompts and answers, are taken when they
// are used, so nobody has to guess the length of an answer. A long answer may leave a debt; the key must wait until it
// is paid.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace troupe {

/// 0: no limit
struct rate_limits {
  std::int64_t requests_per_minute = 0, tokens_per_minute = 0, concurrent = 0;

  friend bool operator==(const rate_limits&, const rate_limits&) = default;
};
/// By their names in the file of keys and in lists of them.
inline constexpr std::pair<const char*, std::int64_t rate_limits::*> rate_limit_fields[] = {
    {"requests_per_minute", &rate_limits::requests_per_minute},
    {"tokens_per_minute", &rate_limits::tokens_per_minute},
    {"concurrent", &rate_limits::concurrent}};

namespace detail {

/// Holds at most `per_minute`; below zero it is in debt.
class refilled_bucket {
 public:
  /// Adds what came back since the last call.
  void refill(instant now);
  /// Another limit applies from now on, and a new one begins full.
  void limit_to(std::int64_t per_minute);
  void take(std::int64_t amount) {
    if (per_minute_ > 0) left_ -= static_cast<double>(amount);
  }
  std::int64_t per_minute() const { return static_cast<std::int64_t>(per_minute_); }
  double left() const { return left_; }
  /// The time until `wanted` is there, or until the bucket is full.
  duration until(double wanted) const;
  duration until_full() const { return until(per_minute_); }

 private:
  double per_minute_ = 0, left_ = 0;
  instant at_;
};

}  // namespace detail

/// Thread-safe.
class key_limits {
 public:
  /// What is left of one limit.
  struct allowance {
    std::int64_t per_minute = 0, left = 0;
    duration until_full{};  ///< the time until a whole minute's worth is back
  };
  /// What a client is told with each answer.
  struct standing {
    allowance requests, tokens;
  };
  enum class limit { requests, tokens, concurrent };
  struct refused {
    limit reached;
    duration wait;
    standing left;
  };
  /// A request in progress, which ends when the last copy is gone.
  using ticket = std::shared_ptr<const void>;

  explicit key_limits(const clock& time) : clock_(time) {}

  /// Begins a request, or says why it may not begin. The key has these limits from now on.
  result<ticket, refused> begin(const std::string& key, const rate_limits& limits);
  /// Takes tokens that were used by a request.
  void use_tokens(const std::string& key, std::int64_t tokens);
  /// By the limits that the key had when its last request came.
  standing standing_of(const std::string& key);

 private:
  struct account {
    detail::refilled_bucket requests, tokens;
    std::int64_t running = 0;

    standing left() const;
  };
  struct accounts {
    std::mutex mutex;
    std::map<std::string, account> by_key;
  };
  void refill(account& own);

  const clock& clock_;
  std::shared_ptr<accounts> accounts_ = std::make_shared<accounts>();  ///< tickets may outlive this
};

}  // namespace troupe
