#include "actors/front.hpp"

#include "tests/actors/support.hpp"
#include "tests/base/full_disk.hpp"

namespace troupe::test {
namespace {

/// The front of a head that was told to load an adapter before it serves.
class front : public testing::Test {
 protected:
  front() {
    config_.name = "test";
    config_.state_dir = folder_.path() / "state";
    config_.model.path = folder_.path() / "letters";
    config_.adapters.dir = folder_.path() / "adapters";
    config_.adapters.preload = {{"first", adapter_folder}};
    const std::filesystem::path file = config_.state_dir / "journal.db";
    front_ = start_front(system_, {.links = &wire_,
                                   .config = &config_,
                                   .prompts = letters_prompting(folder_),
                                   .book = std::make_shared<journal>(journal::options{.file = file}),
                                   .board = std::make_shared<status_board>(),
                                   .adapters = adapters_,
                                   .base = model_id(7),
                                   .router = {},
                                   .supervisor = {},
                                   .directory = std::make_shared<replica_directory>(),
                                   .read_for_endpoint = {},
                                   .say = [](const std::string&) {}});
  }
  ~front() override { stop_front(front_); }

  command_answer run(const std::string& name, const json& arguments) {
    return send_command(front_.store, name, arguments)->take<command_answer>();
  }

  static inline const std::filesystem::path adapter_folder = golden / "llama" / "adapter";
  temp_folder folder_;
  cluster_config config_;
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  caf::actor_system_config actors_config_;
  caf::actor_system system_{actors_config_};
  wire wire_{bus::options{}};
  front_handles front_;
};

/// Otherwise the next version got a number that the journal has for another one.
TEST_F(front, still_has_what_it_loaded_first_after_a_change_that_the_disk_did_not_take) {
  const auto first = adapters_->resolve("first");
  ASSERT_TRUE(first);
  {
    const full_disk all_of_it(1);
    EXPECT_EQ(run("adapters.unload", {{"name", "first"}}).fault, command_fault::failed);
  }
  EXPECT_NE(run("adapters.list", json::object()).result.find("first@1"), std::string::npos);
  EXPECT_EQ(run("adapters.load", {{"name", "second"}, {"path", adapter_folder.string()}}).error, "");
  EXPECT_EQ(adapters_->resolve("first"), first);
  const auto second = adapters_->resolve("second");
  ASSERT_TRUE(second);
  EXPECT_NE(second, first);
}

}  // namespace
}  // namespace troupe::test
