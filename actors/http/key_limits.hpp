// How much each key may ask for: requests and tokens in a minute, requests at a time.
//
// A minute's worth is saved up at most, and comes back evenly. Tokens are taken as they are used, prompts and answers:
// nobody has to guess an answer's length, and a long one may leave a debt, which keeps the key waiting until it is
// paid.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace troupe {

/// 0: without a limit.
struct rate_limits {
  std::int64_t requests_per_minute = 0, tokens_per_minute = 0, concurrent = 0;

  bool any() const { return requests_per_minute > 0 || tokens_per_minute > 0 || concurrent > 0; }
  friend bool operator==(const rate_limits&, const rate_limits&) = default;
};

namespace detail {

/// Holds `per_minute` at most; below zero it is in debt.
class refilled_bucket {
 public:
  /// What came back until now. A limit that has changed counts from now on.
  void refill(std::int64_t per_minute, instant now);
  void take(std::int64_t what) {
    if (per_minute_ > 0) left_ -= static_cast<double>(what);
  }
  double left() const { return left_; }
  /// Until there is so much, and until it is full.
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
  /// What a client is told with each answer.
  struct standing {
    rate_limits limits;
    std::int64_t requests_left = 0, tokens_left = 0;
    duration requests_full{}, tokens_full{};  ///< until all of a minute's worth is back
  };
  struct refused {
    std::string what;  ///< "requests", "tokens" or "concurrent"
    duration wait{};
    standing now;
  };
  /// One request in progress; it ends with the last copy.
  using ticket = std::shared_ptr<const void>;

  explicit key_limits(const clock& time) : clock_(time) {}

  /// A request begins, or may not.
  result<ticket, refused> begin(const std::string& key, const rate_limits& limits);
  /// Tokens were used by a request that began.
  void use_tokens(const std::string& key, std::int64_t tokens);
  standing standing_of(const std::string& key, const rate_limits& limits);

 private:
  struct account {
    detail::refilled_bucket requests, tokens;
    std::int64_t running = 0;
  };
  struct accounts {
    std::mutex mutex;
    std::map<std::string, account> of;
  };
  standing look(account& of, const rate_limits& limits, instant now) const;

  const clock& clock_;
  std::shared_ptr<accounts> accounts_ = std::make_shared<accounts>();  ///< tickets may outlive this
};

}  // namespace troupe
