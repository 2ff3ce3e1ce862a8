// What the files for Kubernetes put into the pods is what the nodes and their people need.
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "tests/base/places.hpp"
#include "tests/base/temp_folder.hpp"
#include "transport/zmq/curve.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

const fs::path kubernetes = configs / "kubernetes";

/// Stands for the cluster: makes the secret as kustomization.yaml says, and the folder of keys as a pod does.
class kubernetes_keys : public testing::Test {
 protected:
  kubernetes_keys() {
    write_keys(folder_.path() / "keys");
    fs::create_directory(folder_.path() / "secret");
    fill_secret();
  }

  /// What a pod's node reads as its folder of keys.
  fs::path keys_of(const std::string& manifest) const {
    const fs::path run = folder_.path() / manifest;
    fs::create_directory(run);
    std::string command = first_match(read_file(kubernetes / manifest), R"re(command: \[sh, -c, "(umask [^"]*)"\])re");
    command = std::regex_replace(command, std::regex("/run/troupe"), run.string());
    command = std::regex_replace(command, std::regex("/secret"), (folder_.path() / "secret").string());
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return run / "keys";
  }

 private:
  static std::string first_match(const std::string& text, const char* what) {
    std::smatch found;
    return std::regex_search(text, found, std::regex(what)) ? found[1].str() : std::string();
  }
  void fill_secret() const {
    const std::string text = read_file(kubernetes / "kustomization.yaml");
    const std::string listed = text.substr(text.find("secretGenerator:"));
    const std::regex item("- (?:([a-z.]+)=)?(keys/[a-z./]+)");
    for (std::sregex_iterator each(listed.begin(), listed.end(), item), end; each != end; ++each) {
      const fs::path from = folder_.path() / (*each)[2].str();
      const std::string name = (*each)[1].matched ? (*each)[1].str() : from.filename().string();
      fs::copy_file(from, folder_.path() / "secret" / name);
    }
  }

  temp_folder folder_;
};

TEST_F(kubernetes_keys, of_the_head_let_in_the_client_whose_key_is_with_them) {
  const fs::path keys = keys_of("head.yaml");
  const auto allowed = read_clients(read_cluster_keys(keys).clients);
  EXPECT_EQ(allowed, std::vector{read_client_key(keys / "client.key").own.public_key});
}

TEST_F(kubernetes_keys, of_a_worker_are_the_clusters) {
  EXPECT_EQ(read_cluster_keys(keys_of("workers.yaml")).allowed.size(), 1u);
}

}  // namespace
}  // namespace troupe::test
