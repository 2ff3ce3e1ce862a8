#pragma once
#include <memory>
#include <utility>

#include "transport/http/http_exchange.hpp"

namespace troupe {

/// Passes everything on: the base of exchanges that add something to another one.
class forwarding_exchange : public http_exchange {
 public:
  explicit forwarding_exchange(std::shared_ptr<http_exchange> to) : to_(std::move(to)) {}

  void reply(http_response response) override { to_->reply(std::move(response)); }
  void begin_stream(http_response head) override { to_->begin_stream(std::move(head)); }
  bool send(std::string_view piece) override { return to_->send(piece); }
  void on_sent(std::function<void()> then) override { to_->on_sent(std::move(then)); }
  void end_stream() override { to_->end_stream(); }
  void on_gone(std::function<void()> then) override { to_->on_gone(std::move(then)); }
  bool is_gone() const override { return to_->is_gone(); }
  const std::string& id() const override { return to_->id(); }
  int replied_status() const override { return to_->replied_status(); }
  void mark_trusted() override { to_->mark_trusted(); }
  void note(const std::string& what) override { to_->note(what); }

 private:
  std::shared_ptr<http_exchange> to_;
};

}  // namespace troupe
