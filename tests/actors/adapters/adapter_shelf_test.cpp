#include "actors/adapters/adapter_shelf.hpp"

#include <algorithm>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "actors/adapters/adapter_files.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/lora/adapter.hpp"
#include "tests/actors/support.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/model/lora/gguf_adapter.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class shelf : public testing::Test {
 protected:
  adapter_shelf::options options() const {
    return {folder_.path() / "store", folder_.path() / "source", read_hf_config(golden / "llama"), model_id(7),
            "letters"};
  }
  /// With an alpha its contents differ from those of the golden one.
  fs::path source(const std::string& name, int alpha = 4) const {
    const fs::path to = folder_.path() / "source" / name;
    fs::create_directories(to);
    fs::copy(golden / "llama" / "adapter", to, fs::copy_options::overwrite_existing | fs::copy_options::recursive);
    json config = json::parse(read_file(to / "adapter_config.json"));
    config["lora_alpha"] = alpha;
    std::ofstream(to / "adapter_config.json") << config.dump();
    return to;
  }
  /// The golden one as a file NAME.gguf.
  fs::path gguf_source(const std::string& name) const {
    const model_config model = read_hf_config(golden / "llama");
    fs::create_directories(folder_.path() / "source");
    return folder_.write("source/" + name + ".gguf",
                         gguf_adapter(golden / "llama" / "adapter", model, "llama").build());
  }
  static std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const fs::path& each : entries_of(folder)) names.push_back(each.filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static std::string text_of(const adapter_piece& piece) {
    return {reinterpret_cast<const char*>(piece.attachment.bytes().data()), piece.attachment.size()};
  }

  temp_folder folder_;
};

TEST_F(shelf, publishes_a_copy_named_by_its_contents) {
  adapter_shelf shelf(options(), {});
  const auto entry = shelf.publish("pricing", source("pricing"));
  EXPECT_EQ(entry.full_name(), "pricing@1");
  EXPECT_EQ(entry.state, adapter_state::ready);
  EXPECT_EQ(entry.spec.rank, 2u);
  const fs::path kept = folder_.path() / "store" / entry.spec.sha256;
  EXPECT_EQ(read_file(kept / "adapter_config.json"), read_file(folder_.path() / "source/pricing/adapter_config.json"));
  const auto now = shelf.snapshot();
  for (const char* name : {"pricing", "pricing@1", "base:pricing", "letters:pricing@1", "letters.gguf:pricing"})
    EXPECT_EQ(now.names.at(name), entry.version) << name;
  EXPECT_EQ(now.names.at("base"), no_adapter);
  const adapter_details& details = now.versions.at(entry.version);
  ASSERT_EQ(details.files.size(), 2u);
  EXPECT_EQ(details.files[1].bytes, fs::file_size(kept / "adapter_model.safetensors"));
  const model_config model = read_hf_config(golden / "llama");
  const lora_adapter packed(read_adapter(kept, model), model.layers);
  EXPECT_EQ(details.bytes, static_cast<std::int64_t>(packed.bytes())) << "as it will lie on the workers";
}

TEST_F(shelf, keeps_a_gguf_file_as_peft_would_have_written_it) {
  adapter_shelf shelf(options(), {});
  const auto entry = shelf.publish("pricing", gguf_source("elsewhere"));
  const fs::path kept = folder_.path() / "store" / entry.spec.sha256;
  EXPECT_EQ(digest_of_adapter(kept), entry.spec.sha256);
  EXPECT_EQ(names_in(kept), (std::vector<std::string>{"adapter_config.json", "adapter_model.safetensors"}));
  const model_config model = read_hf_config(golden / "llama");
  const adapter_file again = read_adapter(kept, model), peft = read_adapter(golden / "llama" / "adapter", model);
  ASSERT_EQ(again.parts.size(), peft.parts.size());
  for (std::size_t i = 0; i < peft.parts.size(); ++i) {
    EXPECT_EQ(again.parts[i].a, peft.parts[i].a);
    EXPECT_EQ(again.parts[i].b, peft.parts[i].b);
    EXPECT_EQ(again.parts[i].scale, peft.parts[i].scale);
  }
  EXPECT_EQ(shelf.publish("pricing", gguf_source("the-same")).version, entry.version);
}

TEST_F(shelf, finds_a_gguf_file_by_its_name) {
  adapter_shelf shelf(options(), {});
  gguf_source("pricing");
  EXPECT_EQ(shelf.find_or_publish("pricing").full_name(), "pricing@1");
  EXPECT_FALSE(shelf.source_of("nothing"));
  source("pricing", 8);
  EXPECT_EQ(shelf.source_of("pricing"), folder_.path() / "source" / "pricing") << "a folder comes first";
}

TEST_F(shelf, names_a_gguf_file_that_it_refuses_and_keeps_nothing_of_it) {
  adapter_shelf shelf(options(), {});
  const fs::path model = folder_.write("model.gguf", gguf_builder().string("general.architecture", "llama").build());
  EXPECT_THAT(refusal([&] { shelf.publish("x", model); }), testing::StartsWith(model.string() + ": is no adapter"));
  adapter_shelf::options other = options();
  other.model = read_hf_config(golden / "qwen2");
  const fs::path file = gguf_source("pricing");
  adapter_shelf elsewhere(other, {});
  EXPECT_THAT(refusal([&] { elsewhere.publish("x", file); }),
              testing::StartsWith(file.string() + ": is an adapter for"));
  EXPECT_THAT(refusal([&] { elsewhere.find_or_publish("pricing"); }), testing::StartsWith("adapter pricing: is an"));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "store"));
}

TEST_F(shelf, refuses_what_no_worker_could_load) {
  adapter_shelf::options small = options();
  const std::uint64_t bytes = adapter_shelf(options(), {}).copy_in("pricing", source("pricing")).bytes;
  small.memory = bytes - 1;
  const auto refusal =
      HasSubstr(fmt::format("has {} bytes in memory, more than adapters.memory ({})", bytes, bytes - 1));
  adapter_shelf shelf(small, {});
  EXPECT_THAT([&] { shelf.preload("pricing"); }, ThrowsMessage<input_error>(refusal));
  EXPECT_EQ(shelf.snapshot().names.count("pricing"), 0u);
  EXPECT_EQ(shelf.list_json(), "[]") << "it has never been a version";
  adapter_shelf before(options(), {});
  before.publish("pricing", source("pricing"));
  before.unload("pricing");
  fs::remove_all(folder_.path() / "source");
  adapter_shelf later(small, before.take_changes());
  EXPECT_THAT([&] { later.load("pricing@1"); }, ThrowsMessage<input_error>(refusal));
  EXPECT_NE(later.list_json().find("failed"), std::string::npos);
}

TEST_F(shelf, takes_the_same_contents_for_the_same_version) {
  adapter_shelf shelf(options(), {});
  const auto first = shelf.publish("pricing", source("pricing"));
  EXPECT_EQ(shelf.publish("pricing", source("pricing")).version, first.version);
  const auto second = shelf.publish("pricing", source("pricing", 8));
  EXPECT_EQ(second.full_name(), "pricing@2");
  EXPECT_NE(second.spec.sha256, first.spec.sha256);
  EXPECT_EQ(shelf.publish("other", source("other", 8)).spec.sha256, second.spec.sha256);
  EXPECT_EQ(shelf.snapshot().names.at("pricing"), second.version);
}

TEST_F(shelf, knows_when_contents_were_published_first) {
  adapter_shelf shelf(options(), {});
  const auto first = shelf.publish("pricing", source("pricing"));
  const auto twin = shelf.publish("twin", source("twin"));
  const auto kept = folder_.path() / "store" / first.spec.sha256 / "adapter_config.json";
  fs::last_write_time(kept,
                      std::chrono::file_clock::from_sys(std::chrono::sys_seconds{std::chrono::seconds(1234567890)}));
  const adapter_shelf later(options(), shelf.take_changes());
  for (const auto& version : {first.version, twin.version})
    EXPECT_EQ(later.snapshot().versions.at(version).created, 1234567890);
}

TEST_F(shelf, tells_whoever_asks_for_a_broken_adapter_nothing_of_its_place) {
  adapter_shelf shelf(options(), {});
  fs::remove(source("pricing") / "adapter_model.safetensors");
  EXPECT_THAT(refusal([&] { shelf.find_or_publish("pricing"); }),
              testing::StartsWith("adapter pricing: has no adapter_model.safetensors: "));
}

TEST_F(shelf, rolls_back_unloads_and_loads_again) {
  adapter_shelf shelf(options(), {});
  const auto first = shelf.publish("pricing", source("pricing"));
  const auto second = shelf.publish("pricing", source("pricing", 8));
  EXPECT_EQ(shelf.rollback("pricing", {}).version, first.version);
  EXPECT_EQ(shelf.snapshot().names.at("pricing"), first.version);
  EXPECT_EQ(shelf.unload("pricing").size(), 2u);
  const auto now = shelf.snapshot();
  EXPECT_FALSE(now.names.contains("pricing"));
  EXPECT_TRUE(now.versions.contains(first.version)) << "sequences that run may need it again";
  EXPECT_NE(refusal([&] { shelf.find_or_publish("pricing"); }), "") << "what was unloaded does not come by itself";
  EXPECT_EQ(shelf.load("pricing@1").version, first.version);
  EXPECT_EQ(shelf.load("pricing").version, second.version) << "the newest";
}

TEST_F(shelf, removes_the_files_of_what_was_unloaded_long_ago) {
  adapter_shelf shelf(options(), {});
  const auto nobody = [](adapter_version) { return false; };
  std::vector<adapter_entry> all;
  const auto name = [](int i) { return "a" + std::to_string(i); };
  const auto folder = [&](int i) { return folder_.path() / "store" / all[to_size(i)].spec.sha256; };
  for (int i = 0; i < 19; ++i) all.push_back(shelf.publish(name(i), source(name(i), 4 + i)));
  const auto twin = shelf.publish("twin", source("twin", 4));
  for (int i = 0; i < 18; ++i) (void)shelf.unload(name(i));
  shelf.forget_unloaded([&](adapter_version version) { return version == all[1].version; });
  shelf.remove_unused_files();
  const auto now = shelf.snapshot();
  EXPECT_FALSE(now.versions.contains(all[0].version));
  EXPECT_TRUE(fs::exists(folder(0))) << "twin has the same contents";
  EXPECT_TRUE(now.versions.contains(all[1].version)) << "a request runs with it";
  EXPECT_EQ(shelf.take_changes().forgotten, std::vector{all[0].version});
  shelf.forget_unloaded(nobody);
  shelf.remove_unused_files();
  EXPECT_FALSE(fs::exists(folder(1)));
  EXPECT_NE(shelf.read_piece({all[1].spec.sha256, "adapter_config.json", 0}).error, "");
  fs::remove_all(folder_.path() / "source");
  EXPECT_EQ(shelf.load(name(2)).version, all[2].version) << "one of the last 16";
  EXPECT_EQ(shelf.snapshot().names.at("twin"), twin.version);
}

TEST_F(shelf, takes_back_what_could_not_be_saved) {
  adapter_shelf shelf(options(), {});
  const auto nobody = [](adapter_version) { return false; };
  const auto first = shelf.publish("pricing", source("pricing"));
  for (int i = 0; i < 17; ++i) {
    shelf.publish("a" + std::to_string(i), source("a" + std::to_string(i), 5 + i));
    (void)shelf.unload("a" + std::to_string(i));
  }
  (void)shelf.take_changes();
  shelf.keep_changes();
  const std::string before = shelf.list_json();
  const auto second = shelf.publish("pricing", source("pricing", 40));
  shelf.forget_unloaded(nobody);
  EXPECT_EQ(shelf.take_changes().forgotten.size(), 1u);
  (void)shelf.unload("pricing");
  shelf.drop_changes();
  shelf.remove_unused_files();
  EXPECT_EQ(shelf.list_json(), before);
  EXPECT_EQ(shelf.snapshot().names.at("pricing"), first.version);
  EXPECT_EQ(shelf.snapshot().versions.size(), 18u) << "all that were saved have their files";
  EXPECT_EQ(shelf.load("a0").full_name(), "a0@1") << "it was not forgotten";
  EXPECT_FALSE(fs::exists(folder_.path() / "store" / second.spec.sha256));
  EXPECT_EQ(shelf.publish("pricing", source("pricing", 41)).full_name(), "pricing@2");
}

TEST_F(shelf, shows_what_answers_and_counts_the_rest) {
  adapter_shelf shelf(options(), {});
  shelf.publish("pricing", source("pricing"));
  shelf.publish("pricing", source("pricing", 8));
  shelf.publish("legal", source("legal"));
  (void)shelf.unload("legal");
  const auto shown = shelf.shown();
  const json list = json::parse(shown.list);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["version"], "pricing@2");
  EXPECT_EQ(shown.others, 2u);
  EXPECT_EQ(json::parse(shelf.list_json()).size(), 3u);
  const json rest = json::parse(shelf.list_json("pricing@1"));
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0]["version"], "pricing@2");
}

TEST_F(shelf, keeps_no_files_of_what_did_not_become_a_version) {
  adapter_shelf shelf(options(), {});
  EXPECT_NE(refusal([&] { shelf.publish("letters", source("letters")); }), "") << "the base's name";
  shelf.remove_unused_files();
  EXPECT_TRUE(fs::is_empty(folder_.path() / "store"));
  const auto other = shelf.copy_in("fine", source("fine"));  // of the same contents, on its way to the workers
  EXPECT_NE(refusal([&] { shelf.publish("letters", source("letters")); }), "");
  shelf.remove_unused_files();
  EXPECT_EQ(shelf.publish(other).full_name(), "fine@1");
}

/// A later start of a head that has named the folder from the beginning.
TEST_F(shelf, keeps_the_files_of_what_may_become_a_version_though_another_copy_was_given_up) {
  adapter_shelf shelf(options(), {});
  const auto wanted = shelf.copy_in("pricing", source("pricing")), unwanted = shelf.copy_in("other", source("pricing"));
  shelf.give_up(unwanted);
  shelf.remove_unused_files();
  EXPECT_EQ(shelf.publish(wanted).full_name(), "pricing@1");
  shelf.remove_unused_files();
  EXPECT_TRUE(fs::exists(folder_.path() / "store" / wanted.sha256 / "adapter_config.json"));
}

TEST_F(shelf, takes_the_place_of_a_folder_that_a_crash_left_without_its_files) {
  const std::string sha256 = adapter_shelf(options(), {}).copy_in("pricing", source("pricing")).sha256;
  fs::remove(folder_.path() / "store" / sha256 / "adapter_config.json");
  adapter_shelf shelf(options(), {});
  EXPECT_EQ(shelf.publish("pricing", source("pricing")).state, adapter_state::ready);
}

/// A worker of the same machine would remove what it has fetched itself.
TEST_F(shelf, owns_the_files_of_its_versions_whoever_brought_them) {
  adapter_shelf before(options(), {});
  const auto entry = before.publish("pricing", source("pricing"));
  const fs::path mark = folder_.path() / "store" / entry.spec.sha256 / fetched_mark;
  std::ofstream(mark) << "";
  const adapter_shelf later(options(), before.take_changes());
  EXPECT_FALSE(fs::exists(mark));
}

TEST_F(shelf, brings_back_nothing_that_its_folder_was_before_when_a_head_starts) {
  const fs::path folder = source("pricing"), next = source("next", 8);
  adapter_shelf shelf(options(), {});
  const auto start = [&](const std::string& answers) {
    shelf.preload("pricing");
    shelf.preload("pricing", folder);
    const auto now = shelf.snapshot();
    const auto found = now.names.find("pricing");
    EXPECT_EQ(found == now.names.end() ? "" : now.versions.at(found->second).full_name, answers);
  };
  start("pricing@1");
  (void)shelf.take_changes();
  start("pricing@1");
  shelf.publish("pricing", next);
  start("pricing@2");
  (void)shelf.rollback("pricing", {});
  start("pricing@1");
  (void)shelf.unload("pricing");
  (void)shelf.take_changes();
  start("");
  EXPECT_TRUE(shelf.take_changes().empty());
  fs::remove_all(folder);
  shelf.preload("pricing");
  EXPECT_FALSE(shelf.snapshot().names.contains("pricing")) << "nor without the folder";
  source("pricing", 40);
  start("pricing@3");
  EXPECT_EQ(shelf.snapshot().versions.size(), 3u);
}

TEST_F(shelf, knows_what_its_folder_was_before_however_many_versions_came_and_went_since) {
  adapter_shelf shelf(options(), {});
  source("pricing");
  shelf.preload("pricing");
  for (int i = 0; i < 40; ++i) {
    shelf.publish("pricing", source("next", 8 + i));
    shelf.forget_unloaded([](adapter_version) { return false; });
  }
  EXPECT_LT(shelf.snapshot().versions.size(), 40u) << "others were forgotten";
  shelf.preload("pricing");
  const auto now = shelf.snapshot();
  EXPECT_EQ(now.versions.at(now.names.at("pricing")).full_name, "pricing@41");
}

TEST_F(shelf, finds_files_again_that_were_gone_when_a_head_starts) {
  source("pricing");
  adapter_shelf before(options(), {});
  before.preload("pricing");
  fs::remove_all(folder_.path() / "store");
  adapter_shelf later(options(), before.take_changes());
  EXPECT_FALSE(later.snapshot().names.contains("pricing"));
  later.preload("pricing");
  EXPECT_TRUE(later.snapshot().names.contains("pricing"));
  EXPECT_EQ(json::parse(later.list_json()).size(), 1u);
}

TEST_F(shelf, brings_back_what_was_rolled_back_when_it_is_published_again_not_when_a_head_starts) {
  adapter_shelf shelf(options(), {});
  const auto first = shelf.publish("pricing", source("pricing"));
  const auto second = shelf.publish("pricing", source("pricing", 8));
  (void)shelf.rollback("pricing", {});
  (void)shelf.take_changes();
  shelf.preload("pricing");
  EXPECT_EQ(shelf.snapshot().names.at("pricing"), first.version);
  EXPECT_EQ(shelf.publish("pricing", source("pricing", 8)).version, second.version);
  EXPECT_EQ(shelf.snapshot().names.at("pricing"), second.version);
  ASSERT_EQ(shelf.take_changes().pointers.size(), 1u) << "and that is written down";
  (void)shelf.rollback("pricing", {});
  (void)shelf.unload("pricing@2");
  EXPECT_EQ(shelf.publish("pricing", source("pricing", 8)).version, second.version);
  EXPECT_EQ(shelf.snapshot().names.at("pricing"), second.version);
}

TEST_F(shelf, finds_folders_of_the_name_on_demand) {
  adapter_shelf shelf(options(), {});
  source("later");
  EXPECT_EQ(shelf.find_or_publish("later").full_name(), "later@1");
  EXPECT_EQ(shelf.find_or_publish("later").full_name(), "later@1");
  EXPECT_NE(refusal([&] { shelf.find_or_publish("never"); }).find("there is none"), std::string::npos);
  for (const char* name : {"../source/later", "/etc", "", "."})
    EXPECT_NE(refusal([&] { shelf.find_or_publish(name); }), "") << name;
}

TEST_F(shelf, refuses_folders_that_cannot_run_with_the_model) {
  adapter_shelf shelf(options(), {});
  EXPECT_NE(refusal([&] { shelf.publish("x", folder_.path() / "nowhere"); }).find("nowhere: there is none: name"),
            std::string::npos);
  const auto other = refusal([&] { shelf.publish("x", golden / "gpt2" / "adapter"); });
  EXPECT_NE(other.find((golden / "gpt2" / "adapter").string()), std::string::npos) << other;
  EXPECT_EQ(other.find("incoming"), std::string::npos) << other;
  const auto broken = source("broken");
  std::ofstream(broken / "adapter_config.json") << "{";
  EXPECT_NE(refusal([&] { shelf.publish("x", broken); }), "");
  const auto pickled = source("pickled");
  fs::rename(pickled / "adapter_model.safetensors", pickled / "adapter_model.bin");
  EXPECT_THAT(refusal([&] { shelf.publish("x", pickled); }), HasSubstr("has pickled weights only"));
  for (const char* name : {"a/b", "..", "base", "letters", "a@1", ""})
    EXPECT_NE(refusal([&] { shelf.publish(name, source("fine")); }), "") << name;
  for (const auto& each : fs::directory_iterator(folder_.path() / "store"))
    EXPECT_FALSE(each.path().filename().string().starts_with(".")) << "nothing half done stays: " << each.path();
}

TEST_F(shelf, refuses_the_names_of_the_base_before_it_copies_anything) {
  adapter_shelf shelf(options(), {});
  for (const char* name : {"base", "letters", "letters.gguf"})
    EXPECT_THAT([&] { (void)shelf.copy_in(name, source("pricing")); },
                ThrowsMessage<input_error>(HasSubstr("and not the base's name")));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "store"));
}

TEST_F(shelf, looks_at_the_sizes_of_all_files_before_it_copies_one) {
  adapter_shelf shelf(options(), {});
  const auto config = source("config") / "adapter_config.json",
             weights = source("weights") / "adapter_model.safetensors";
  fs::resize_file(config, most_adapter_config_bytes + 1);
  fs::resize_file(weights, largest_adapter_file + 1);
  const full_disk full(0);  // so that copying fails in another way
  for (const fs::path& file : {config, weights})
    EXPECT_THAT(
        [&] { shelf.publish("x", file.parent_path()); },
        ThrowsMessage<input_error>(HasSubstr(fmt::format("{}: has {} bytes", file.string(), fs::file_size(file)))));
}

TEST_F(shelf, refuses_a_pipe_instead_of_waiting_for_it) {
  adapter_shelf shelf(options(), {});
  const fs::path folder = source("piped");
  fs::remove(folder / "adapter_model.safetensors");
  ASSERT_EQ(::mkfifo((folder / "adapter_model.safetensors").c_str(), 0600), 0);
  EXPECT_THAT([&] { shelf.publish("piped", folder); }, ThrowsMessage<input_error>(HasSubstr("is no file")));
}

TEST_F(shelf, a_full_disk_leaves_nothing_half_published) {
  adapter_shelf shelf(options(), {});
  const auto folder = source("pricing");
  {
    const full_disk in_the_middle_of_the_weights(fs::file_size(folder / "adapter_model.safetensors") / 2);
    EXPECT_THROW(shelf.publish("pricing", folder), write_failure);
  }
  EXPECT_TRUE(fs::is_empty(folder_.path() / "store"));
  EXPECT_EQ(shelf.publish("pricing", folder).full_name(), "pricing@1");
}

TEST_F(shelf, hands_out_pieces_of_known_files_alone) {
  adapter_shelf shelf(options(), {});
  const auto entry = shelf.publish("pricing", source("pricing"));
  const auto whole = read_file(folder_.path() / "source/pricing/adapter_model.safetensors");
  const auto piece = shelf.read_piece({entry.spec.sha256, "adapter_model.safetensors", 100});
  EXPECT_EQ(piece.error, "");
  EXPECT_EQ(text_of(piece), whole.substr(100));
  EXPECT_EQ(shelf.read_piece({entry.spec.sha256, "adapter_model.safetensors", whole.size()}).attachment.size(), 0u);
  const want_piece wrong[] = {{entry.spec.sha256, "adapter_model.safetensors", whole.size() + 1},
                              {entry.spec.sha256, "../../source/pricing/adapter_config.json", 0},
                              {entry.spec.sha256, "/etc/passwd", 0},
                              {entry.spec.sha256, "", 0},
                              {"..", "adapter_config.json", 0},
                              {std::string(64, 'a'), "adapter_config.json", 0},
                              {"", "adapter_config.json", 0}};
  for (const auto& each : wrong) {
    const auto refused = shelf.read_piece(each);
    EXPECT_NE(refused.error, "") << each.sha256 << " " << each.file;
    EXPECT_EQ(refused.attachment.size(), 0u);
  }
}

TEST_F(shelf, knows_its_versions_after_a_restart) {
  catalogue_records saved;
  adapter_version version;
  {
    adapter_shelf before(options(), {});
    version = before.publish("pricing", source("pricing")).version;
    saved = before.take_changes();
  }
  fs::create_directories(folder_.path() / "store/.incoming-1-1");
  adapter_shelf after(options(), saved);
  EXPECT_FALSE(fs::exists(folder_.path() / "store/.incoming-1-1"));
  EXPECT_EQ(after.snapshot().names.at("pricing"), version);
  EXPECT_EQ(after.publish("pricing", source("pricing", 8)).full_name(), "pricing@2");
  fs::remove_all(folder_.path() / "store");
  adapter_shelf without(options(), saved);
  EXPECT_FALSE(without.snapshot().names.contains("pricing"));
  EXPECT_NE(without.list_json().find("\"missing\""), std::string::npos);
  without.preload("pricing");
  EXPECT_TRUE(without.snapshot().names.contains("pricing@2")) << "the folder has other contents now";
}

/// Its head died before the journal had the version.
TEST_F(shelf, removes_what_became_no_version_of_an_earlier_head) {
  adapter_shelf before(options(), {});
  const fs::path store = folder_.path() / "store";
  const auto kept = store / before.publish("kept", source("kept")).spec.sha256;
  const auto saved = before.take_changes();
  const auto lost = store / before.publish("lost", source("lost", 8)).spec.sha256;
  const auto fetched = store / std::string(64, 'f'), named = store / "named";
  for (const auto& folder : {fetched, named}) fs::create_directories(folder);
  folder_.write("store/" + fetched.filename().string() + "/" + std::string(fetched_mark), "");
  adapter_shelf after(options(), saved);
  after.remove_unused_files();
  EXPECT_FALSE(fs::exists(lost));
  for (const auto& folder : {kept, fetched, named}) EXPECT_TRUE(fs::exists(folder)) << folder;
}

TEST_F(shelf, rolls_back_to_no_version_whose_files_are_gone) {
  adapter_shelf before(options(), {});
  const auto first = before.publish("pricing", source("pricing"));
  const auto second = before.publish("pricing", source("pricing", 8));
  fs::remove_all(folder_.path() / "store" / first.spec.sha256);
  adapter_shelf after(options(), before.take_changes());
  EXPECT_THAT(refusal([&] { after.rollback("pricing", {}); }), HasSubstr("no earlier version of it is ready"));
  EXPECT_THAT(refusal([&] { after.rollback("pricing", 1); }), HasSubstr("pricing@1: is missing"));
  EXPECT_EQ(after.snapshot().names.at("pricing"), second.version);
}

TEST_F(shelf, keeps_its_versions_under_another_quantization) {
  adapter_shelf before(options(), {});
  const auto version = before.publish("pricing", source("pricing")).version;
  auto other = options();
  other.base = model_id(8);
  other.quantization = "u8";
  adapter_shelf after(other, before.take_changes());
  EXPECT_EQ(after.snapshot().names.at("pricing"), version);
  EXPECT_TRUE(after.snapshot().versions.contains(version));
  const auto changes = after.take_changes();
  ASSERT_EQ(changes.entries.size(), 1u) << "it is written down";
  EXPECT_EQ(changes.entries[0].spec.base, other.base);
  const adapter_file file = read_adapter(golden / "llama" / "adapter", other.model);
  const std::size_t bytes = lora_adapter::packed_bytes(file, adapter_precision::byte);
  EXPECT_EQ(changes.entries[0].spec.bytes, bytes) << "beside this base";
  EXPECT_EQ(after.snapshot().versions.at(version).bytes, static_cast<std::int64_t>(bytes));
  EXPECT_EQ(after.publish("pricing", source("pricing")).version, version);
}

TEST_F(shelf, does_not_take_what_was_made_for_another_model) {
  adapter_shelf before(options(), {});
  before.publish("pricing", source("pricing"));
  fs::remove_all(folder_.path() / "source");
  auto other = options();
  other.base = model_id(8);
  other.model = read_hf_config(golden / "mistral");
  adapter_shelf after(other, before.take_changes());
  EXPECT_FALSE(after.snapshot().names.contains("pricing"));
  EXPECT_THAT(after.list_json(), HasSubstr("made for another model"));
  for (const char* name : {"pricing", "pricing@1"})
    EXPECT_THAT([&] { after.load(name); }, ThrowsMessage<input_error>(HasSubstr("made for another model"))) << name;
  EXPECT_THAT([&] { after.find_or_publish("pricing"); },
              ThrowsMessage<input_error>(HasSubstr("made for another model")));
  EXPECT_TRUE(after.take_changes().empty());
}

}  // namespace
}  // namespace troupe::test
