// A batch's line is answered as its body would be over HTTP, whatever it asks for.
#include "actors/http/jobs/batch_lines.hpp"

#include "base/field_error.hpp"
#include "tests/actors/http/fixture.hpp"
#include "tests/actors/jobs/jobs_fixture.hpp"

namespace troupe::test {
namespace {

constexpr const char* calling_template =
    "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}<tool_call>"
    "{% for m in messages %}{{ m.content }}{% endfor %}";

class batch_lines : public api_test {
 protected:
  using answering = std::function<void(const std::vector<begin_request>&)>;

  batch_lines() { start(calling_template); }

  std::unique_ptr<head> begin_life() {
    const served_model model = served(calling_template);
    return std::make_unique<head>(folder_, model.prompts,
                                  [&](jobs_parts& parts) { parts.read_for_endpoint = batch_line_reader(model); });
  }
  static void submit(head& life, const std::string& endpoint, const std::vector<json>& bodies) {
    std::vector<std::string> lines;
    for (const json& body : bodies)
      lines.push_back(json{
          {"custom_id", std::to_string(lines.size())},
          {"method", "POST"},
          {"url", endpoint},
          {"body", body}}.dump());
    life.submit("b", lines, {{"endpoint", endpoint}, {"weight", 3}}, "ann");
  }
  /// Once so many lines have their output.
  static std::vector<json> outputs_of(head& life, std::size_t count) {
    life.wait_for_answers("b", count);
    std::vector<json> all;
    const json page = life.get("job.outputs", {{"id", "b"}, {"from", 0}});
    for (const json& each : page["outputs"])
      all.push_back(json::parse(batch_output_line(each["text"].get<std::string>(), each["ok"].get<bool>(), "b")));
    return all;
  }
  template <class Next>
  static std::vector<begin_request> take(std::size_t requests, const Next& next) {
    std::vector<begin_request> taken;
    while (taken.size() < requests) taken.push_back(next());
    return taken;
  }
  static std::vector<begin_request> take(std::size_t requests, head& life) {
    return take(requests, [&] { return life.next(); });
  }
  /// Without what is drawn anew for each answer.
  static json plain(json body) {
    body.erase("id");
    body.erase("created");
    if (!body.contains("choices")) return body;
    for (json& choice : body["choices"])
      if (choice.contains("message") && choice["message"].contains("tool_calls"))
        for (json& call : choice["message"]["tool_calls"]) call.erase("id");
    return body;
  }
  void expect_the_same(const std::string& path, const json& body, std::size_t requests, const answering& answer) {
    SCOPED_TRACE(body.dump());
    auto asked = post(path, body);
    const auto over_http = take(requests, [this] { return gateway_.take<begin_request>(); });
    answer(over_http);
    const answered got = asked.get();
    ASSERT_EQ(got.status, 200) << got.body;
    const auto life = begin_life();
    submit(*life, path, {body});
    const auto as_line = take(requests, *life);
    answer(as_line);
    const json output = outputs_of(*life, 1).at(0);
    EXPECT_EQ(output["custom_id"], "0");
    EXPECT_EQ(output["error"], nullptr);
    EXPECT_EQ(output["response"]["status_code"], 200);
    EXPECT_EQ(plain(output["response"]["body"]).dump(), plain(got.parsed()).dump());
    for (std::size_t i = 0; i < requests; ++i) {
      const auto &one = over_http[i].engine, &other = as_line[i].engine;
      EXPECT_EQ(one.sequence.prompt, other.sequence.prompt);
      EXPECT_EQ(one.sequence.answers, other.sequence.answers);
      EXPECT_EQ(one.sampling.seed, other.sampling.seed);
      EXPECT_EQ(one.sampling.max_tokens, other.sampling.max_tokens);
      EXPECT_EQ(one.sampling.logprobs, other.sampling.logprobs);
      EXPECT_EQ(one.sampling.prompt_logprobs, other.sampling.prompt_logprobs);
      EXPECT_EQ(one.sampling.constraint, other.sampling.constraint);
    }
  }
  static answer_part detailed_part(const begin_request& to, const std::string& text) {
    answer_part part = part_of(text);
    for (const token_id token : part.tokens) part.details.push_back({token, -0.5f, {{token, -0.5f}, {7, -1.5f}}});
    part.end = answer_end{"stop", static_cast<std::int64_t>(to.engine.sequence.prompt.size()), {}};
    return part;
  }
};

TEST_F(batch_lines, tell_the_probabilities_of_prompt_and_answer) {
  expect_the_same("/v1/completions",
                  {{"prompt", "AB"}, {"echo", true}, {"logprobs", 1}, {"prompt_logprobs", 2}, {"seed", 3}}, 1,
                  [](const auto& requests) {
                    answer_part part = detailed_part(requests[0], "cd");
                    part.scored = {{letter('A'), {}, {}}, {letter('B'), -0.5f, {{9, -0.25f}}, 2}};
                    requests[0].listener->on_part(std::move(part));
                  });
}

TEST_F(batch_lines, say_by_a_code_that_no_adapter_has_the_name) {
  json output{{"index", 0}, {"custom_id", "a"}, {"error", "why"}};
  EXPECT_EQ(json::parse(batch_output_line(output.dump(), false, "b"))["error"],
            json({{"code", "line_failed"}, {"message", "why"}}));
  output["code"] = "model_not_found";
  EXPECT_EQ(json::parse(batch_output_line(output.dump(), false, "b"))["error"]["code"], "model_not_found");
}

TEST_F(batch_lines, bring_responses_which_always_have_a_field_for_errors) {
  const auto life = begin_life();
  submit(*life, "/v1/responses", {json{{"input", "A"}}});
  give(take(1, *life)[0], "yes", "stop");
  const json output = outputs_of(*life, 1).at(0);
  EXPECT_EQ(output["error"], nullptr);
  EXPECT_EQ(output["response"]["body"]["error"], nullptr);
  EXPECT_EQ(output["response"]["body"]["output"][0]["content"][0]["text"], "yes");
}

TEST_F(batch_lines, have_several_prompts_and_answers) {
  expect_the_same("/v1/completions", {{"prompt", {"AB", "C"}}, {"n", 2}, {"seed", 3}, {"max_tokens", 5}}, 2,
                  [](const auto& requests) {
                    for (const begin_request& each : requests) {
                      give(each, "x");
                      give(each, "y", "length", 1);
                      give(each, "z", "stop", 0);
                    }
                  });
}

TEST_F(batch_lines, call_tools) {
  const json tool{{"type", "function"}, {"function", {{"name", "go"}, {"parameters", json::object()}}}};
  const json body{{"messages", json::array({{{"role", "user"}, {"content", "Hi"}}})},
                  {"tools", json::array({tool})},
                  {"logprobs", true},
                  {"top_logprobs", 2},
                  {"seed", 3}};
  const auto call = [](const auto& requests) {
    requests[0].listener->on_part(detailed_part(requests[0], R"(<tool_call>{"name":"go","arguments":{}}</tool_call>)"));
  };
  expect_the_same("/v1/chat/completions", body, 1, call);
}

TEST_F(batch_lines, are_embeddings) {
  expect_the_same("/v1/embeddings", {{"input", {"AB", "C"}}, {"seed", 3}}, 2, [](const auto& requests) {
    for (const begin_request& each : requests) {
      answer_part part;
      part.hidden = {3, 4};
      part.end = answer_end{"length", 2, {}};
      each.listener->on_part(std::move(part));
    }
  });
}

TEST_F(batch_lines, run_on_the_share_of_their_key) {
  const auto life = begin_life();
  submit(*life, "/v1/completions", {json{{"prompt", "A"}}});
  const begin_request begun = life->next();
  EXPECT_NE(begun.engine.sequence.tenant, tenant_id(0));
  EXPECT_EQ(begun.engine.sequence.weight, 3u);
  EXPECT_EQ(begun.engine.sequence.priority, request_priority::batch);
  EXPECT_NE(begun.engine.sequence.cache_salt, 0u) << "nobody else finds their prompts cached";
}

TEST_F(batch_lines, come_once_each_though_the_head_dies) {
  auto life = begin_life();
  submit(*life, "/v1/completions", {json{{"prompt", "A"}, {"logprobs", 1}}, json{{"prompt", "B"}, {"logprobs", 1}}});
  auto begun = take(2, *life);
  begun[0].listener->on_part(detailed_part(begun[0], "x"));
  const json first = outputs_of(*life, 1).at(0);
  begun.clear();
  life = nullptr;
  life = begin_life();
  begun = take(1, *life);
  EXPECT_EQ(begun[0].engine.sequence.prompt, letters("B")) << "what has its output is not asked again";
  begun[0].listener->on_part(detailed_part(begun[0], "y"));
  const auto outputs = outputs_of(*life, 2);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0], first) << "what was said stays";
  EXPECT_EQ(outputs[0]["response"]["body"]["choices"][0]["logprobs"]["token_logprobs"], json({-0.5}));
  EXPECT_EQ(outputs[1]["custom_id"], "1");
}

TEST_F(batch_lines, without_a_seed_are_drawn_as_before_when_the_head_has_died) {
  const auto seeds = [](head& life) {
    std::vector<std::uint64_t> drawn;
    for (const begin_request& each : take(4, life)) drawn.push_back(each.engine.sampling.seed);
    return drawn;
  };
  auto life = begin_life();
  submit(*life, "/v1/completions",
         {json{{"prompt", "A"}}, json{{"prompt", "A"}}, json{{"prompt", "A"}, {"seed", 3}},
          json{{"prompt", "A"}, {"seed", -1}}});
  const auto before = seeds(*life);
  EXPECT_NE(before[0], before[1]);
  EXPECT_EQ(before[2], 3u);
  EXPECT_NE(before[3], UINT64_MAX) << "-1 is none";
  life = nullptr;
  life = begin_life();
  EXPECT_EQ(seeds(*life), before);
}

TEST_F(batch_lines, are_asked_again_whole_when_one_of_their_requests_found_no_room) {
  const auto life = begin_life();
  submit(*life, "/v1/completions", {json{{"prompt", {"A", "B"}}}});
  const auto first = take(2, *life);
  give(first[0], "x", "stop");
  first[1].listener->on_refused({first[1].id, "full", refusal_cause::full, std::chrono::milliseconds(1)});
  EXPECT_EQ(life->next_end().id, first[0].id);
  for (const begin_request& each : take(2, *life)) give(each, "y", "stop");
  const json choices = outputs_of(*life, 1).at(0)["response"]["body"]["choices"];
  EXPECT_EQ(choices[0]["text"], "y");
  EXPECT_EQ(choices[1]["text"], "y");
}

TEST_F(batch_lines, are_read_from_files_as_people_write_them_and_refused_as_a_whole) {
  const auto line = [](const std::string& id) {
    return json{{"custom_id", id}, {"url", "/v1/completions"}, {"body", {{"prompt", "A"}}}}.dump();
  };
  const auto read = [&](const std::string& file) { return job_lines_of(file, "/v1/completions", served()).size(); };
  const auto why = [&](const std::string& file) {
    try {
      read(file);
    } catch (const field_error& error) {
      return error.field();
    }
    return std::string("none");
  };
  EXPECT_EQ(read("\n" + line("a") + "\n  \n" + line("b") + "\n\n"), 2u) << "empty lines mean nothing";
  EXPECT_EQ(why(line("a") + "\n" + line("a")), "custom_id");
  EXPECT_EQ(why(line(std::string(512, 'a'))), "none");
  EXPECT_EQ(why(line(std::string(513, 'a'))), "custom_id") << "each output repeats it";
  EXPECT_EQ(why(" \n"), "input_file_id");
}

TEST_F(batch_lines, refuse_with_their_number) {
  const auto why = [&](const json& line, const char* endpoint = "/v1/completions") {
    try {
      job_lines_of(line.dump(), endpoint, served(calling_template));
    } catch (const field_error& error) {
      EXPECT_NE(std::string(error.what()).find("line 1"), std::string::npos) << error.what();
      return error.field();
    }
    return std::string("none");
  };
  const auto line = [](const json& body, const char* url = "/v1/completions") {
    return json{{"custom_id", "a"}, {"url", url}, {"body", body}};
  };
  EXPECT_EQ(why(line({{"prompt", "A"}, {"logprobs", 2}, {"echo", true}, {"n", 3}})), "none");
  EXPECT_EQ(why(line({{"prompt", "A"}, {"stream", true}})), "stream");
  EXPECT_EQ(why(line({{"prompt", "A"}, {"suffix", "x"}})), "suffix");
  EXPECT_EQ(why(line({{"prompt", "A"}, {"model", std::string("a\0b", 3)}})), "model");
  EXPECT_EQ(why(line({{"prompt", "A"}}, "/v1/embeddings")), "url");
  EXPECT_EQ(why({{"custom_id", "a"}, {"url", "/v1/completions"}}), "body");
  EXPECT_EQ(why({{"url", "/v1/completions"}}), "custom_id");
  json getting = line({{"prompt", "A"}});
  getting["method"] = "GET";
  EXPECT_EQ(why(getting), "method");
  EXPECT_NE(why(line({{"prompt", "A"}, {"temperature", -1}})), "none");
}

}  // namespace
}  // namespace troupe::test
