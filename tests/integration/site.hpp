// A small model with adapters, requests of every kind, and the answers that a single process gives to them.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "base/thread_pool.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/lora/adapter.hpp"
#include "tests/integration/process.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe::test {

class test_site {
 public:
  test_site();

  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }
  /// Sets the cache for packed models to a folder of this site.
  words environment() const { return {"TROUPE_CACHE=" + path("cache").string()}; }
  std::filesystem::path model() const { return path("model"); }
  std::filesystem::path adapter(const std::string& name) const { return path(name); }

  /// Gives the model a chat template that knows tools, and how they are called.
  void give_chat_template() const;

  /// Requests that differ from each other in everything they can; `i` chooses one. Each has `tokens` tokens if nothing
  /// ends it earlier.
  client_request request(int i, std::int64_t tokens) const;
  /// From now on `expected` uses this folder for the adapter of that name.
  void take_adapter(const std::string& name, const std::filesystem::path& folder);
  /// What a single process answers, without a cluster.
  std::vector<token_id> expected(const client_request& request, std::int32_t index = 0) const;

 private:
  temp_folder folder_;
  mutable thread_pool pool_{1};
  std::shared_ptr<const loaded_model> loaded_;
  std::map<std::string, std::shared_ptr<const lora_adapter>> adapters_;
};

}  // namespace troupe::test
