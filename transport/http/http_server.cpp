#include "transport/http/http_server.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>

#include "base/entropy.hpp"
#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "transport/http/http_connection_impl.hpp"

namespace troupe {
namespace {

using namespace detail;

bool has_ipv6(asio::io_context& context) {
  boost::system::error_code fault;
  tcp::socket(context).open(tcp::v6(), fault);
  return !fault;
}

tcp::endpoint resolve(const http_options& options) {
  asio::io_context context;
  // A socket of IPv6 for every address takes what comes by IPv4, too, unless the machine has none of that kind.
  if (options.host == "*") return {has_ipv6(context) ? tcp::v6() : tcp::v4(), options.port};
  tcp::resolver resolver(context);
  boost::system::error_code fault;
  const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, fault);
  if (fault || found.empty())
    refuse("http {}:{}: there is no such address: {}", options.host, options.port, fault.message());
  return found.begin()->endpoint();
}

void listen(tcp::acceptor& acceptor, const http_options& options) {
  const tcp::endpoint address = resolve(options);
  boost::system::error_code fault;
  acceptor.open(address.protocol(), fault);
  if (!fault) acceptor.set_option(tcp::acceptor::reuse_address(true), fault);
  if (!fault && options.host == "*" && address.protocol() == tcp::v6())
    acceptor.set_option(asio::ip::v6_only(false), fault);  // whatever the machine's default is
  if (!fault) acceptor.bind(address, fault);
  if (!fault) acceptor.listen(asio::socket_base::max_listen_connections, fault);
  if (fault == asio::error::address_in_use)  // no bad input: the port may be free the next time
    throw std::runtime_error(fmt::format("http {}:{}: the port is in use: choose another one or end what uses it",
                                         options.host, options.port));
  if (fault) refuse("http {}:{}: cannot be listened at: {}", options.host, options.port, fault.message());
}

}  // namespace

struct http_server::impl {
  explicit impl(std::shared_ptr<http_shared> all) : shared(std::move(all)) {}

  const std::shared_ptr<http_shared> shared;
  asio::io_context context;
  tcp::acceptor acceptor{asio::make_strand(context)};  ///< used there alone, once it is started
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<std::weak_ptr<http_connection>> connections;
  std::uint16_t port = 0;

  void accept();
  void accept_later();
  void take(detail::socket from);
  std::shared_ptr<http_connection> longest_awaited();
  bool make_room();
  void end_idle();
};

void check_http_address(const http_options& options) {
  asio::io_context context;
  tcp::acceptor acceptor(context);
  listen(acceptor, options);
}

http_server::http_server(http_options options, http_service& service) {
  // The rest of the process needs files, too, however many clients come.
  options.max_connections = std::min(options.max_connections, most_open_files() / 2);
  impl_ = std::make_unique<impl>(std::make_shared<http_shared>(std::move(options), service));
  impl_->shared->instance = static_cast<std::uint32_t>(entropy());
  listen(impl_->acceptor, impl_->shared->options);
  impl_->port = impl_->acceptor.local_endpoint().port();
}

http_server::~http_server() {
  stop();
}

void http_server::start() {
  impl_->accept();
  for (int i = 0; i < impl_->shared->options.threads; ++i)
    impl_->threads.emplace_back([own = impl_.get()] { own->context.run(); });
}

/// On the acceptor's strand.
void http_server::impl::accept() {
  acceptor.async_accept(asio::make_strand(context),
                        [this](const boost::system::error_code& fault, detail::socket from) {
                          if (shared->stopping) return;
                          if (fault) return accept_later();
                          take(std::move(from));
                          accept();
                        });
}

/// The process or the system lacks something (descriptors, memory): tries again when there may be some.
void http_server::impl::accept_later() {
  const auto timer = std::make_shared<asio::steady_timer>(acceptor.get_executor(), std::chrono::milliseconds(50));
  timer->async_wait([this, timer](const auto& ended) {
    if (!ended && !shared->stopping) accept();
  });
}

/// The connection that is to go where there are too many: null where a request is in progress at all of them.
std::shared_ptr<http_connection> http_server::impl::longest_awaited() {
  const std::lock_guard lock(mutex);
  std::shared_ptr<http_connection> longest;
  for (const auto& each : connections)
    if (auto connection = each.lock(); connection && connection->is_waiting())
      if (!longest || connection->rank() < longest->rank()) longest = std::move(connection);
  return longest;
}

/// So that those who say nothing keep nobody out.
bool http_server::impl::make_room() {
  while (const auto longest = longest_awaited()) {
    if (!longest->give_up()) continue;
    asio::post(longest->executor(), [longest] { longest->drop(); });
    return true;
  }
  return false;
}

void http_server::impl::take(detail::socket from) {
  if (shared->connections >= shared->options.max_connections && !make_room())
    return shared->service.on_surplus();  // `from` is closed by going out of scope
  const auto connection = std::make_shared<http_connection>(std::move(from), shared);
  {
    const std::lock_guard lock(mutex);
    if (connections.size() > 2 * shared->connections + 16)
      std::erase_if(connections, [](const auto& each) { return each.expired(); });
    connections.push_back(connection);
  }
  asio::dispatch(connection->executor(), [connection] { connection->start(); });
}

/// The connections without a request in progress.
void http_server::impl::end_idle() {
  const std::lock_guard lock(mutex);
  for (const auto& each : connections)
    if (const auto connection = each.lock())
      asio::post(connection->executor(), [connection] { connection->end_when_idle(); });
}

void http_server::stop() {
  if (impl_->shared->stopping.exchange(true)) return;
  asio::post(impl_->acceptor.get_executor(), [own = impl_.get()] {
    boost::system::error_code ignored;
    own->acceptor.close(ignored);
  });
  const auto until = steady::now() + impl_->shared->options.grace;
  while (!impl_->threads.empty() && impl_->shared->connections > 0 && steady::now() < until) {
    impl_->end_idle();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  impl_->context.stop();
  for (std::thread& each : impl_->threads) each.join();
  impl_->threads.clear();
  for (const auto& each : impl_->connections)
    if (const auto connection = each.lock()) connection->drop();
}

std::uint16_t http_server::port() const {
  return impl_->port;
}

}  // namespace troupe
