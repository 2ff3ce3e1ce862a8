#include <algorithm>

#include "tests/actors/http/fixture.hpp"
#include "tests/base/full_disk.hpp"

namespace troupe::test {
namespace {

class api_files : public api_test {
 protected:
  std::string refused_field(const std::string& path) {
    const answered got = ask("GET", path).get();
    EXPECT_EQ(got.status, 400) << path;
    return got.parsed()["error"]["param"];
  }
};

TEST_F(api_files, are_logged_with_the_status_that_was_sent_where_there_is_no_room_for_them) {
  front_.reset();
  front_ = std::make_unique<http_front>(http_options{.answers_bytes = 100'000}, parts());
  const std::string id = upload("batch", std::string(100'000, 'x'));
  EXPECT_EQ(ask("GET", "/v1/files/" + id + "/content").get().status, 503);
  front_->stop();
  EXPECT_NE(log().find("/content 503 "), std::string::npos) << log();
  EXPECT_NE(log().find("no room for the answer"), std::string::npos) << log();
}

TEST_F(api_files, hold_up_nobody_while_the_disk_takes_its_time) {
  const std::string id = upload("batch", "abc");
  std::vector<std::future<answered>> asked;
  {
    busy_thread busy(*file_work_);
    asked.push_back(ask("GET", "/v1/files/" + id + "/content"));
    ASSERT_TRUE(is_soon([&] { return file_work_->waiting() == 1; }));
    asked.push_back(ask("POST", "/v1/files", form("batch", "def"), form_type));
    ASSERT_TRUE(is_soon([&] { return file_work_->waiting() == 2; }));
    asked.push_back(ask("DELETE", "/v1/files/" + id));
    ASSERT_TRUE(is_soon([&] { return file_work_->waiting() == 3; }));
    EXPECT_EQ(ask("GET", "/v1/models").get().status, 200);
  }
  EXPECT_EQ(asked[0].get().body, "abc");
  EXPECT_EQ(asked[1].get().status, 200);
  EXPECT_EQ(asked[2].get().status, 200);
}

TEST_F(api_files, leave_nothing_where_the_disk_does_not_take_them) {
  const std::filesystem::path files = folder_.path() / "state" / "files";
  for (const rlim_t room : {rlim_t{1}, rlim_t{64}}) {  // too little for the file, and for what is said of it
    const full_disk small(room);
    const answered got = ask("POST", "/v1/files", form("batch", "a\r\nb"), form_type).get();
    EXPECT_EQ(got.status, 500);
    EXPECT_EQ(got.parsed()["error"]["message"], "the server's disk is full") << "whose path is the operator's";
    EXPECT_TRUE(std::filesystem::is_empty(files));
    EXPECT_TRUE(is_soon([&] { return log().find(files.string() + "/file-") != std::string::npos; })) << log();
    log_.clear();
  }
  folder_.write("state/files/file-1.data.7.partial", "of a process that died");
  folder_.write("state/files/file-2.data", "of one that died before it had said what this is");
  start();
  EXPECT_TRUE(std::filesystem::is_empty(files));
}

TEST_F(api_files, are_kept) {
  const json file = ask("POST", "/v1/files", form("batch", "a\r\nb"), form_type).get().parsed();
  EXPECT_EQ(file["filename"], "in.jsonl");
  EXPECT_EQ(file["bytes"], 4);
  const std::string id = file["id"];
  EXPECT_EQ(ask("GET", "/v1/files/" + id + "/content").get().body, "a\r\nb");
  auto listing = ask("GET", "/v1/files");
  jobs_.take<command_call>().answer({"[]"});
  EXPECT_EQ(listing.get().parsed()["data"].size(), 1u);
  EXPECT_EQ(ask("GET", "/v1/files?purpose=fine-tune").get().parsed()["data"].size(), 0u);
  start();
  EXPECT_EQ(ask("GET", "/v1/files/" + id + "/content").get().body, "a\r\nb") << "also by the next head";
  const json lost = ask("POST", "/v1/files", form("batch", "b"), form_type).get().parsed();
  std::filesystem::remove(folder_.path() / "state" / "files" / (lost["id"].get<std::string>() + ".data"));
  EXPECT_EQ(ask("GET", "/v1/files/" + lost["id"].get<std::string>() + "/content").get().status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/files/" + id).get().parsed()["deleted"], true);
  EXPECT_EQ(ask("GET", "/v1/files/" + id).get().status, 404);
  EXPECT_EQ(ask("GET", "/v1/files/..%2f..%2fapi_keys/content").get().status, 404);
  EXPECT_EQ(ask("POST", "/v1/files", form("batch", "a"), {{"content-type", "text/plain"}}).get().status, 400);
  EXPECT_EQ(ask("POST", "/v1/files", "--b\r\nbroken", form_type).get().status, 400);
  EXPECT_EQ(ask("POST", "/v1/files", form("else", "a"), form_type).get().parsed()["error"]["param"], "purpose");
  EXPECT_EQ(ask("POST", "/v1/files", form("batch", ""), form_type).get().parsed()["error"]["param"], "file");
  const std::string long_name = form("batch", "a", std::string(1025, 'a'));
  EXPECT_EQ(ask("POST", "/v1/files", long_name, form_type).get().parsed()["error"]["param"], "file");
  const answered no_boundary =
      ask("POST", "/v1/files", form("batch", "a"), {{"content-type", "multipart/form-data"}}).get();
  EXPECT_NE(no_boundary.body.find("names no boundary"), no_boundary.body.npos) << no_boundary.body;
}

TEST_F(api_files, are_kept_whole_or_not_at_all) {
  const auto send = [&](const std::string& body, const std::string& type) {
    return ask("POST", "/v1/files", body, {{"content-type", type}}).get();
  };
  const std::string type = "multipart/form-data; boundary=B", part = "--B\r\nContent-Disposition: form-data; name=",
                    purpose = part + "\"purpose\"\r\n\r\nbatch\r\n", file = part + "\"file\"; filename=\"x\"\r\n\r\n";
  EXPECT_EQ(send(purpose + file + "a\r\n--B--\r\n", type).parsed()["bytes"], 1);
  EXPECT_EQ(send(purpose + file + "a\r\n--B--", "Multipart/Form-Data; Boundary=B").parsed()["bytes"], 1);
  EXPECT_EQ(send("\r\n" + purpose + file + "a\r\n--B--", type).parsed()["bytes"], 1) << "an empty line before it";
  EXPECT_EQ(send("This is\r\na form.\r\n" + purpose + file + "a\r\n--B--", type).parsed()["bytes"], 1);
  const std::string padded = "--B \t" + purpose.substr(3) + "--B\t " + file.substr(3) + "a\r\n--B-- \r\n";
  EXPECT_EQ(send(padded, type).parsed()["bytes"], 1) << "blanks behind its boundaries";
  EXPECT_EQ(send("a\r\nb--B\r\n", type).status, 400) << "it has no boundary";
  EXPECT_EQ(send(purpose + file + "a\r\n--B", type).status, 400) << "it is cut off";
  EXPECT_EQ(send(purpose + file + "a\r\n--B --\r\nb\r\n--B--\r\n", type).status, 400) << "it would lose its end";
  EXPECT_EQ(send(purpose + file + "a\r\n--Both\r\nb\r\n--B--\r\n", type).status, 400) << "it would lose its end";
}

TEST_F(api_files, have_the_names_that_they_were_given) {
  const auto name = [&](const std::string& written) -> std::string {
    return ask("POST", "/v1/files", form("batch", "a", written), form_type).get().parsed()["filename"];
  };
  EXPECT_EQ(name(R"(a\"b.jsonl)"), R"(a"b.jsonl)");
  EXPECT_EQ(name(R"(a\\)"), R"(a\)");
  EXPECT_EQ(name(R"(C:\in.jsonl)"), R"(C:\in.jsonl)") << "a backslash by itself";
}

/// One that was damaged on the disk hides no other.
TEST_F(api_files, are_listed_without_those_of_which_nothing_is_known_any_more) {
  const std::string id = ask("POST", "/v1/files", form("batch", "a"), form_type).get().parsed()["id"];
  for (const char* damaged : {"", "{", "[]", R"({"filename":5})", R"({"purpose":"batch","bytes":"x"})"}) {
    folder_.write("state/files/file-1.json", damaged);
    const json listed = ask("GET", "/v1/files?purpose=batch").get().parsed();
    ASSERT_EQ(listed["data"].size(), 1u) << listed;
    EXPECT_EQ(listed["data"][0]["id"], id);
    EXPECT_EQ(ask("GET", "/v1/files/file-1").get().status, 404);
  }
}

TEST_F(api_files, are_listed_newest_first_among_those_of_one_second) {
  std::vector<std::string> ids;
  for (int i = 0; i < 20; ++i) ids.insert(ids.begin(), upload("batch", "abc"));
  for (int life = 0; life < 2; ++life) {
    std::vector<std::string> listed;
    const json got = ask("GET", "/v1/files?purpose=batch").get().parsed();
    for (const json& each : got["data"]) listed.push_back(each["id"]);
    EXPECT_EQ(listed, ids);
    start();  // what is known of them comes from the disk then
  }
}

TEST_F(api_files, are_listed_in_the_order_that_is_asked_for) {
  const auto send = [&] {
    return ask("POST", "/v1/files", form("batch", "a"), form_type).get().parsed()["id"].get<std::string>();
  };
  send();
  send();
  const auto list = [&](const std::string& order) {
    std::vector<std::string> ids;
    const json got = ask("GET", "/v1/files?purpose=batch" + order).get().parsed();
    for (const json& each : got["data"]) ids.push_back(each["id"]);
    return ids;
  };
  auto newest_first = list("");
  EXPECT_EQ(newest_first.size(), 2u);
  EXPECT_EQ(list("&order=desc"), newest_first);
  std::reverse(newest_first.begin(), newest_first.end());
  EXPECT_EQ(list("&order=asc"), newest_first);
  EXPECT_EQ(refused_field("/v1/files?order=up"), "order");
}

TEST_F(api_files, and_all_that_is_listed_by_pages_of_a_size_that_there_is) {
  for (const char* limit : {"abc", "0", "-1", "5x", "10001", "99999999999999999999"})
    EXPECT_EQ(refused_field(std::string("/v1/files?limit=") + limit), "limit") << limit;
  for (const std::string list : {"batches", "fine_tuning/jobs", "fine_tuning/jobs/ftjob-1/events"}) {
    EXPECT_EQ(refused_field("/v1/" + list + "?limit=101"), "limit") << list;
    EXPECT_EQ(refused_field("/v1/" + list + "?order=asc"), "order") << list;
  }
}

TEST_F(api_files, are_shown_to_the_key_that_sent_them) {
  const auto ann = as_key(add_api_key(keys_file(), {.name = "ann"})),
             bob = as_key(add_api_key(keys_file(), {.name = "bob"}));
  const auto root = as_key(add_api_key(keys_file(), {.name = "root", .is_admin = true}));
  start();
  http_headers sending = ann;
  sending.insert(sending.end(), form_type.begin(), form_type.end());
  const std::string id = ask("POST", "/v1/files", form("batch", "a"), sending).get().parsed()["id"];
  const std::string file = "/v1/files/" + id;
  for (const auto& [method, path] :
       {std::pair("GET", file), std::pair("GET", file + "/content"), std::pair("DELETE", file)})
    EXPECT_EQ(ask(method, path, {}, bob).get().status, 404) << method << path;
  const json batch{{"input_file_id", id}, {"endpoint", "/v1/completions"}};
  EXPECT_EQ(ask("POST", "/v1/batches", batch.dump(), bob).get().status, 404);
  const std::string uploads = "/v1/files?purpose=batch";
  EXPECT_EQ(ask("GET", uploads, {}, bob).get().parsed()["data"].size(), 0u);
  EXPECT_EQ(ask("GET", uploads, {}, ann).get().parsed()["data"].size(), 1u);
  EXPECT_EQ(ask("GET", uploads, {}, root).get().parsed()["data"].size(), 1u);
  EXPECT_EQ(ask("GET", file, {}, root).get().status, 200);
  EXPECT_EQ(ask("DELETE", file, {}, ann).get().status, 200);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "state" / "files"));
}

TEST_F(api_files, of_one_key_take_no_more_of_the_disk_than_they_may) {
  std::map<std::string, http_headers> headers;
  for (const char* name : {"ann", "bob"}) {
    headers[name] = form_type;
    headers[name].emplace_back("authorization", "Bearer " + add_api_key(keys_file(), {.name = name}));
  }
  file_bytes_per_key_ = 24'000;  // of a small one and of what is said of it there are no three
  start();
  const auto send = [&](const std::string& key, std::size_t bytes = 1) {
    return ask("POST", "/v1/files", form("batch", std::string(bytes, 'a')), headers[key]).get();
  };
  EXPECT_EQ(send("ann", 20'000).status, 413);
  const std::string id = send("ann").parsed()["id"];
  EXPECT_EQ(send("ann").status, 200);
  start();  // also for a head that was started again
  const answered refused = send("ann");
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.parsed()["error"]["param"], "file");
  EXPECT_EQ(refused.parsed()["error"]["code"], "insufficient_quota");
  EXPECT_EQ(send("bob").status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/files/" + id, {}, headers["ann"]).get().status, 200);
  EXPECT_EQ(send("ann").status, 200);
  EXPECT_EQ(send("ann").status, 413);
}

TEST_F(api_files, are_looked_for_in_their_own_folder_alone) {
  folder_.write("secret.json", R"({"filename":"secret"})");
  std::filesystem::create_directories(folder_.path() / "kept" / "file-");
  file_store files(folder_.path() / "kept");
  EXPECT_FALSE(files.find("file-/../../secret"));
  folder_.write("kept/other.json", R"({"filename":"other"})");
  EXPECT_FALSE(files.find("other"));
}

/// As clients do that delete each file that a list of pages brings.
TEST_F(api_files, are_listed_behind_one_that_was_deleted) {
  for (int i = 0; i < 5; ++i) upload("batch", "a");
  const std::string list = "/v1/files?purpose=batch&limit=2";
  std::string after;
  std::size_t deleted = 0;
  for (bool has_more = true; has_more;) {
    const json page = ask("GET", list + after).get().parsed();
    for (const json& each : page["data"]) {
      EXPECT_EQ(ask("DELETE", "/v1/files/" + each["id"].get<std::string>()).get().status, 200);
      ++deleted;
    }
    has_more = page["has_more"];
    after = "&after=" + page["last_id"].get<std::string>();
  }
  EXPECT_EQ(deleted, 5u);
  EXPECT_EQ(ask("GET", list).get().parsed()["data"].size(), 0u) << "it is in no list";
}

TEST_F(api_files, and_all_that_is_listed_by_pages_that_begin_behind_what_there_is) {
  upload("batch", "a");
  EXPECT_EQ(refused_field("/v1/files?purpose=batch&after=file-none"), "after");
  auto asked = ask("GET", "/v1/batches?after=batch_none");
  jobs_.take<command_call>().answer({{}, "after: there is no job batch_none", command_fault::bad_input});
  const json error = asked.get().parsed()["error"];
  EXPECT_EQ(error["param"], "after");
  EXPECT_NE(error["message"].get<std::string>().find("batch_none"), std::string::npos);
}

TEST_F(api_files, of_others_are_no_place_in_a_list) {
  const auto ann = as_key(add_api_key(keys_file(), {.name = "ann"})),
             bob = as_key(add_api_key(keys_file(), {.name = "bob"}));
  start();
  http_headers sending = ann;
  sending.insert(sending.end(), form_type.begin(), form_type.end());
  const std::string id = ask("POST", "/v1/files", form("batch", "a"), sending).get().parsed()["id"];
  const std::string behind_it = "/v1/files?purpose=batch&after=" + id;
  ask("DELETE", "/v1/files/" + id, {}, ann).get();
  EXPECT_EQ(ask("GET", behind_it, {}, ann).get().status, 200);
  EXPECT_EQ(ask("GET", behind_it, {}, bob).get().status, 400);
}

}  // namespace
}  // namespace troupe::test
