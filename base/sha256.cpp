#include "base/sha256.hpp"

#include <array>
#include <new>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace troupe {

struct sha256::state {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~state() { EVP_MD_CTX_free(context); }
};

sha256::sha256() : state_(std::make_unique<state>()) {
  if (state_->context == nullptr || EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

sha256::~sha256() = default;

sha256& sha256::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
  return *this;
}

sha256& sha256::add(std::string_view text) {
  return add(std::as_bytes(std::span(text)));
}

sha256& sha256::add_field(std::string_view text) {
  return add(fmt::format("{}:", text.size())).add(text);
}

std::string sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  EVP_DigestFinal_ex(state_->context, digest.data(), &bytes);
  std::string text;
  for (unsigned int i = 0; i < bytes; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace troupe
