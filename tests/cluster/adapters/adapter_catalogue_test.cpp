#include "cluster/adapters/adapter_catalogue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

namespace troupe {
namespace {

using reason = catalogue_error::reason;

adapter_spec spec_of(std::string name, char content) {
  return {std::move(name), std::string(64, content), 1000, 8, model_id{5}};
}

class a_catalogue : public testing::Test {
 protected:
  adapter_version publish(const std::string& name, char content) {
    const auto entry = adapters.publish(spec_of(name, content));
    EXPECT_TRUE(entry.ok());
    return entry->version;
  }
  adapter_version publish_ready(const std::string& name, char content) {
    const adapter_version version = publish(name, content);
    EXPECT_TRUE(adapters.set_ready(version));
    return version;
  }
  adapter_version resolved(std::string_view text) {
    const auto version = adapters.resolve(text);
    return version.ok() ? *version : adapter_version{~0u};
  }
  reason refusal(std::string_view text) { return adapters.resolve(text).error().why; }

  adapter_catalogue adapters{{"llama", model_id{5}, 1000}};
};

TEST_F(a_catalogue, numbers_versions_and_flips_a_name_when_one_is_ready) {
  const auto entry = adapters.publish(spec_of("pricing", 'a'));
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->full_name(), "pricing@1");
  EXPECT_EQ(entry->version, adapter_version{1});
  EXPECT_EQ(refusal("pricing"), reason::not_ready);
  EXPECT_EQ(adapters.resolve("pricing").error().text, "adapter pricing: no version of it is ready") << "it loads";
  EXPECT_EQ(adapters.current("pricing"), nullptr);
  EXPECT_TRUE(adapters.set_ready(entry->version));
  EXPECT_EQ(resolved("pricing"), entry->version);
  const adapter_version second = publish("pricing", 'b');
  EXPECT_EQ(resolved("pricing"), entry->version) << "the old one answers until the new one is ready";
  adapters.set_ready(second);
  EXPECT_EQ(resolved("pricing"), second);
}

TEST_F(a_catalogue, understands_every_way_to_name_a_version) {
  const adapter_version first = publish_ready("pricing", 'a');
  const adapter_version second = publish_ready("pricing", 'b');
  EXPECT_EQ(resolved("pricing@1"), first);
  EXPECT_EQ(resolved("base:pricing"), second);
  EXPECT_EQ(resolved("llama:pricing@1"), first);
  EXPECT_EQ(resolved("base"), adapter_version{});
  EXPECT_EQ(resolved("llama"), adapter_version{});
  EXPECT_EQ(resolved("llama.gguf:pricing@1"), first) << "as the base was called after its file";
  EXPECT_EQ(resolved("llama.gguf"), adapter_version{});
}

TEST_F(a_catalogue, tells_which_names_the_base_has_got_since) {
  publish_ready("pricing", 'a');
  adapter_catalogue renamed({"pricing", model_id{}}, adapters.take_changes());
  EXPECT_EQ(renamed.hidden_by_base(), std::vector<std::string>{"pricing"});
  EXPECT_EQ(renamed.resolve("pricing").value(), adapter_version{});
  EXPECT_TRUE(adapters.hidden_by_base().empty());
}

TEST(names_of_the_base, are_those_of_its_file_too) {
  for (const char* text : {"base", "Big", "Big.gguf", "Big-00001-of-00002.gguf"})
    EXPECT_TRUE(is_base_name(text, "Big")) << text;
  for (const char* text : {"Bigger", "big", "Big-00001-of-00002", ".gguf", ""}) {
    EXPECT_FALSE(is_base_name(text, "Big")) << text;
    EXPECT_FALSE(is_base_name(text, "")) << text;
  }
}

TEST_F(a_catalogue, refuses_what_names_nothing) {
  publish_ready("pricing", 'a');
  EXPECT_EQ(refusal("legal"), reason::unknown);
  EXPECT_EQ(refusal("pricing@2"), reason::unknown);
  for (const char* text : {"", "@1", "pricing@", "pricing@0", "pricing@x", "pricing@1x", "pricing@-1", "other:pricing",
                           "base:", "pricing@99999999999999", "a/b", "../x", "a..b", ".a", "a b", "a\nb"}) {
    EXPECT_EQ(refusal(text), reason::bad_name) << text;
  }
}

TEST_F(a_catalogue, publishes_only_what_makes_sense) {
  const auto refused = [&](auto&& change) {
    adapter_spec spec = spec_of("fine", 'a');
    change(spec);
    const auto answer = adapters.publish(spec);
    EXPECT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().text.find('\n'), std::string::npos);
    return answer.error().why;
  };
  for (const char* name : {"", "base", "llama", "llama.gguf", "a/b", "a@1", "a:b", "..", "-rf", "a\n"}) {
    EXPECT_EQ(refused([&](adapter_spec& spec) { spec.name = name; }), reason::bad_name) << name;
  }
  EXPECT_EQ(refused([](adapter_spec& spec) { spec.name = std::string(65, 'a'); }), reason::bad_name);
  EXPECT_EQ(refused([](adapter_spec& spec) { spec.sha256 = "abc"; }), reason::bad_spec);
  EXPECT_EQ(refused([](adapter_spec& spec) { spec.sha256[5] = 'G'; }), reason::bad_spec);
  EXPECT_EQ(refused([](adapter_spec& spec) { spec.rank = 0; }), reason::bad_spec);
  EXPECT_EQ(refused([](adapter_spec& spec) { spec.base = model_id{6}; }), reason::other_base);
  EXPECT_TRUE(adapters.list().empty());
}

TEST_F(a_catalogue, publishes_the_same_content_once) {
  const adapter_version first = publish("pricing", 'a');
  EXPECT_EQ(publish("pricing", 'a'), first);
  adapters.set_ready(first);
  EXPECT_EQ(publish("pricing", 'a'), first);
  publish("pricing", 'b');
  EXPECT_NE(publish("pricing", 'a'), first) << "there is a newer one: this is a new version";
}

TEST_F(a_catalogue, does_not_go_back_when_an_older_version_gets_ready_late) {
  const adapter_version first = publish("pricing", 'a'), second = publish("pricing", 'b');
  EXPECT_TRUE(adapters.set_ready(second));
  EXPECT_FALSE(adapters.set_ready(first));
  EXPECT_EQ(resolved("pricing"), second);
  EXPECT_EQ(resolved("pricing@1"), first);
}

TEST_F(a_catalogue, does_not_flip_to_what_failed) {
  const adapter_version first = publish_ready("pricing", 'a');
  const adapter_version second = publish("pricing", 'b');
  adapters.set_failed(second, "its bytes do not match");
  EXPECT_FALSE(adapters.set_ready(second));
  EXPECT_EQ(resolved("pricing"), first);
  EXPECT_EQ(refusal("pricing@2"), reason::not_ready);
  EXPECT_EQ(adapters.find(second)->error, "its bytes do not match");
  EXPECT_NE(publish("pricing", 'b'), second) << "what failed may be tried again, as a new version";
}

TEST_F(a_catalogue, rolls_back_to_what_can_answer_alone) {
  const adapter_version first = publish_ready("pricing", 'a'), second = publish_ready("pricing", 'b');
  const adapter_version third = publish_ready("pricing", 'c');
  const auto all_but = [](adapter_version gone) { return [=](adapter_version version) { return version != gone; }; };
  EXPECT_EQ(adapters.rollback("pricing", 2, all_but(second)).error().why, reason::not_ready);
  EXPECT_EQ(resolved("pricing"), third);
  EXPECT_EQ(adapters.rollback("pricing", {}, all_but(second))->version, first);
  EXPECT_EQ(resolved("pricing"), first);
}

TEST_F(a_catalogue, rolls_back_by_a_flip) {
  const adapter_version first = publish_ready("pricing", 'a'), second = publish_ready("pricing", 'b');
  const adapter_version third = publish_ready("pricing", 'c');
  EXPECT_EQ(adapters.rollback("pricing")->version, second);
  EXPECT_EQ(adapters.rollback("pricing", 1)->version, first);
  EXPECT_EQ(adapters.rollback("pricing").error().why, reason::not_ready);
  EXPECT_EQ(adapters.rollback("pricing", 3)->version, third) << "forward again";
  EXPECT_EQ(adapters.rollback("pricing", 9).error().why, reason::unknown);
  EXPECT_EQ(adapters.rollback("legal").error().why, reason::unknown);
  (void)adapters.rollback("pricing");
  EXPECT_EQ(resolved("pricing"), second);
  EXPECT_EQ(resolved("pricing"), second);
  const adapter_version fourth = publish_ready("pricing", 'd');
  EXPECT_EQ(resolved("pricing"), fourth);
}

TEST_F(a_catalogue, unloads_and_loads_again) {
  const adapter_version first = publish_ready("pricing", 'a'), second = publish_ready("pricing", 'b');
  EXPECT_EQ(adapters.unload("pricing@2").error().why, reason::is_current);
  EXPECT_EQ(*adapters.unload("pricing@1"), (std::vector{first}));
  EXPECT_EQ(*adapters.unload("pricing"), (std::vector{second}));
  EXPECT_EQ(refusal("pricing"), reason::not_ready);
  EXPECT_EQ(adapters.resolve("pricing").error().text,
            "adapter pricing: no version of it is ready: `troupe adapters load pricing` takes it back");
  EXPECT_FALSE(adapters.set_ready(second)) << "an acknowledgement that came late";
  EXPECT_EQ(adapters.load("pricing@1")->state, adapter_state::loading);
  EXPECT_TRUE(adapters.set_ready(first));
  EXPECT_EQ(resolved("pricing"), first);
  EXPECT_EQ(adapters.load("pricing")->version, second);
  EXPECT_EQ(adapters.load("legal").error().why, reason::unknown);
  EXPECT_EQ(adapters.unload("legal").error().why, reason::unknown);
}

TEST_F(a_catalogue, unloads_a_name_by_its_only_version) {
  const adapter_version first = publish_ready("pricing", 'a'), second = publish_ready("pricing", 'b');
  EXPECT_TRUE(adapters.unload("pricing@1").ok());
  EXPECT_EQ(*adapters.unload("pricing@2"), (std::vector{second}));
  EXPECT_EQ(refusal("pricing"), reason::not_ready);
  EXPECT_NE(first, second);
}

TEST_F(a_catalogue, is_bounded) {
  adapter_catalogue small({"llama", model_id{5}, 2});
  EXPECT_TRUE(small.publish(spec_of("a", 'a')).ok());
  EXPECT_TRUE(small.publish(spec_of("b", 'a')).ok());
  const auto refused = small.publish(spec_of("c", 'a'));
  EXPECT_EQ(refused.error().why, reason::full);
  EXPECT_NE(refused.error().text.find("troupe adapters unload"), std::string::npos) << "it names a remedy";
  EXPECT_TRUE(small.unload("a").ok());
  EXPECT_TRUE(small.publish(spec_of("c", 'a')).ok());
}

TEST_F(a_catalogue, keeps_the_newest_versions_of_a_name_and_the_one_that_answers) {
  adapters = adapter_catalogue({"llama", model_id{5}, 4, 2, 16});
  std::vector<adapter_version> all;
  for (const char content : {'a', 'b', 'c', 'd'}) all.push_back(publish_ready("pricing", content));
  const auto state_of = [&](std::size_t place) { return adapters.find(all[place])->state; };
  EXPECT_EQ(state_of(0), adapter_state::ready) << "when the fourth came, there were two before the third";
  all.push_back(publish_ready("pricing", 'e'));
  EXPECT_EQ(state_of(0), adapter_state::unloaded);
  EXPECT_EQ(state_of(1), adapter_state::ready);
  EXPECT_EQ(adapters.rollback("pricing", 2)->version, all[1]);
  publish("pricing", 'f');
  EXPECT_EQ(resolved("pricing"), all[1]) << "it answers, so it stays";
  EXPECT_EQ(state_of(2), adapter_state::unloaded);
  EXPECT_EQ(state_of(3), adapter_state::ready);
  EXPECT_EQ(state_of(4), adapter_state::ready);
}

TEST_F(a_catalogue, forgets_what_was_unloaded_long_ago_and_is_not_in_use) {
  adapters = adapter_catalogue({"llama", model_id{5}, 1000, 16, 1});
  const auto nobody = [](adapter_version) { return false; };
  const adapter_version first = publish_ready("a", 'a'), second = publish_ready("b", 'a');
  const adapter_version third = publish_ready("c", 'a');
  (void)adapters.unload("b");
  (void)adapters.unload("a");
  (void)adapters.take_changes();
  EXPECT_TRUE(adapters.forget_unloaded([&](adapter_version each) { return each == second; }).empty());
  EXPECT_NE(adapters.find(second), nullptr) << "a request still runs with it";
  const auto gone = adapters.forget_unloaded(nobody);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].version, second);
  EXPECT_EQ(adapters.find(second), nullptr);
  EXPECT_EQ(refusal("b"), reason::not_ready) << "what was unloaded does not come by itself";
  EXPECT_EQ(refusal("b@1"), reason::unknown);
  EXPECT_EQ(adapters.load("a")->version, first) << "unloaded last: it can be loaded again";
  EXPECT_TRUE(adapters.set_ready(first));
  EXPECT_TRUE(adapters.forget_unloaded(nobody).empty());
  EXPECT_EQ(resolved("a"), first);
  EXPECT_EQ(resolved("c"), third);
  const auto changes = adapters.take_changes();
  EXPECT_EQ(changes.forgotten, std::vector{second});
  EXPECT_EQ(adapters.publish(spec_of("b", 'a'))->full_name(), "b@2") << "an ordinal is not given again";
}

TEST_F(a_catalogue, lists_the_versions_that_answer) {
  publish_ready("a", 'a');
  const adapter_version newest = publish_ready("a", 'b');
  publish("b", 'a');
  const adapter_version other = publish_ready("c", 'a');
  const auto versions = [&](std::size_t most) {
    std::vector<adapter_version> all;
    for (const adapter_entry& entry : adapters.answering(most)) all.push_back(entry.version);
    return all;
  };
  EXPECT_EQ(versions(9), (std::vector{newest, other}));
  EXPECT_EQ(versions(1), std::vector{newest});
}

TEST_F(a_catalogue, keeps_the_beginning_of_a_long_error) {
  const adapter_version version = publish("a", 'a');
  adapters.set_failed(version, std::string(5000, 'x'));
  EXPECT_EQ(adapters.find(version)->error, std::string(1024, 'x'));
}

TEST_F(a_catalogue, lists_page_by_page) {
  for (const char content : {'a', 'b', 'c'}) publish_ready("pricing", content);
  publish_ready("legal", 'a');
  std::vector<std::string> names;
  for (std::string last;;) {
    const auto page = adapters.list(last, 2);
    EXPECT_LE(page.size(), 2u);
    if (page.empty()) break;
    for (const adapter_entry& entry : page) names.push_back(entry.full_name());
    last = names.back();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"legal@1", "pricing@1", "pricing@2", "pricing@3"}));
  EXPECT_TRUE(adapters.list("zebra", 2).empty());
}

TEST_F(a_catalogue, notes_its_changes_once) {
  publish_ready("pricing", 'a');
  const auto changes = adapters.take_changes();
  ASSERT_EQ(changes.entries.size(), 1u);
  EXPECT_EQ(changes.entries[0].state, adapter_state::ready);
  ASSERT_EQ(changes.pointers.size(), 1u);
  EXPECT_EQ(changes.pointers[0].current, 1u);
  EXPECT_TRUE(adapters.take_changes().empty());
}

/// Applies changes as a journal would.
void apply(catalogue_records& saved, const catalogue_records& changes) {
  const auto put = [](auto& list, const auto& item, auto&& key) {
    const auto same = std::find_if(list.begin(), list.end(), [&](auto& each) { return key(each) == key(item); });
    if (same == list.end())
      list.push_back(item);
    else
      *same = item;
  };
  for (const auto& entry : changes.entries) put(saved.entries, entry, [](auto& each) { return each.version; });
  for (const auto& pointer : changes.pointers) put(saved.pointers, pointer, [](auto& each) { return each.name; });
  std::erase_if(saved.entries, [&](const adapter_entry& each) {
    return std::find(changes.forgotten.begin(), changes.forgotten.end(), each.version) != changes.forgotten.end();
  });
  saved.next_version = std::max(saved.next_version, changes.next_version);
}

TEST(a_random_catalogue, never_gives_a_number_twice_and_comes_back_the_same) {
  std::mt19937 random(3);
  const adapter_catalogue::options options{"llama", model_id{5}, 100000};
  catalogue_records saved;
  auto adapters = std::make_unique<adapter_catalogue>(options);
  std::uint32_t newest = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string name(1, static_cast<char>('a' + random() % 4));
    const std::string versioned = name + "@" + std::to_string(1 + random() % 6);
    const adapter_version any{static_cast<std::uint32_t>(1 + random() % (newest + 1))};
    switch (random() % 7) {
      case 0: {
        const auto entry = adapters->publish(spec_of(name, static_cast<char>('a' + random() % 6)));
        ASSERT_TRUE(entry.ok());
        EXPECT_LE(entry->version.value, newest + 1);
        newest = std::max(newest, entry->version.value);
        break;
      }
      case 1:
      case 2:
        adapters->set_ready(any);
        break;
      case 3:
        adapters->set_failed(any, "why not");
        break;
      case 4:
        (void)adapters->rollback(name);
        break;
      case 5:
        (void)(random() % 8 == 0 ? adapters->unload(name) : adapters->unload(versioned));
        break;
      default:
        (void)adapters->load(versioned);
        break;
    }
    if (i % 10 == 0) (void)adapters->forget_unloaded([&](adapter_version) { return random() % 4 == 0; });
    apply(saved, adapters->take_changes());
    for (const char* each : {"a", "b", "c", "d"}) {
      const adapter_entry* current = adapters->current(each);
      EXPECT_TRUE(current == nullptr || current->state == adapter_state::ready);
    }
    if (i % 50 == 0) {
      auto again = std::make_unique<adapter_catalogue>(options, saved);
      ASSERT_EQ(again->list().size(), adapters->list().size());
      for (const adapter_entry& entry : adapters->list()) {
        EXPECT_EQ(again->is_current(entry), adapters->is_current(entry)) << entry.full_name();
        EXPECT_EQ(again->find(entry.version)->state, entry.state);
      }
      adapters = std::move(again);
    }
  }
}

}  // namespace
}  // namespace troupe
