#include <nlohmann/json.hpp>

#include "tests/model/tokenizer/support.hpp"

namespace troupe {
namespace {

using namespace test;
using ids = std::vector<token_id>;

const std::string letters = R"({"a":0,"b":1," ":2,"\u2581":3,"ab":4,"1":5})";

std::shared_ptr<const tokenizer> parse(const std::string& json, const std::string& config = "") {
  return parse_tokenizer_json(json, config, "folder/tokenizer.json");
}
std::shared_ptr<const tokenizer> with(const std::string& rest, const std::string& config = "") {
  return parse(tiny_json(letters, R"(["a b"])", rest), config);
}
std::string refusal_of(const std::string& json, const std::string& config = "") {
  return refusal([&] { parse(json, config); });
}
std::string refusal_of_part(const std::string& rest) {
  return refusal_of(tiny_json(letters, "[]", rest));
}

TEST(tokenizer_json, reads_merges_as_texts_and_as_pairs) {
  EXPECT_EQ(parse(tiny_json(letters, R"(["a b"])"))->encode("aab"), (ids{0, 4}));
  EXPECT_EQ(parse(tiny_json(letters, R"([["a","b"]])"))->encode("aab"), (ids{0, 4}));
}

TEST(tokenizer_json, splits_with_every_behavior) {
  const auto split = [](const std::string& behavior, const std::string& invert) {
    const auto tokens = parse(tiny_json(R"({"a":0," ":1,"a ":2," a":3,"  ":4})", R"([["a"," "],[" ","a"],[" "," "]])",
                                        R"("pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":")" +
                                            behavior + R"(","invert":)" + invert + "}"));
    return tokens->encode("a  a");
  };
  EXPECT_EQ(split("Isolated", "false"), (ids{0, 1, 1, 0}));
  EXPECT_EQ(split("Removed", "false"), (ids{0, 0}));
  EXPECT_EQ(split("Removed", "true"), (ids{1, 1}));
  EXPECT_EQ(split("MergedWithPrevious", "false"), (ids{2, 1, 0}));
  EXPECT_EQ(split("MergedWithNext", "false"), (ids{0, 1, 3}));
  EXPECT_EQ(split("Contiguous", "false"), (ids{0, 4, 0}));
}

/// As SuperBPE cuts numbers into groups of three digits, from the end.
TEST(tokenizer_json, cuts_where_a_pattern_matches_nothing_wide) {
  for (const char* behavior : {"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"}) {
    const auto tokens = parse(
        tiny_json(R"({"1":0,"2":1,"3":2,"4":3,"12":4,"34":5})", R"([["1","2"],["3","4"]])",
                  R"re("pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?=(\\d{3})+(?!\\d))"},"behavior":")re" +
                      std::string(behavior) + R"("})"));
    EXPECT_EQ(tokens->encode("1234"), (ids{0, 1, 5})) << behavior;
    EXPECT_EQ(tokens->encode("12"), ids{4}) << behavior;
  }
}

TEST(tokenizer_json, puts_special_tokens_where_the_template_says) {
  const std::string special = R"("added_tokens":[{"id":6,"content":"<s>","special":true}])";
  const std::string rule = R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},
    {"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"id":"<s>","ids":[6],"tokens":["<s>"]}}})";
  const auto tokens = with(special + "," + rule);
  EXPECT_EQ(tokens->encode("ab"), (ids{6, 4}));
  EXPECT_EQ(tokens->encode("ab", plain), ids{4});
  EXPECT_EQ(tokens->encode("<s>", plain), ids{6});
  EXPECT_EQ(tokens->bos(), 6);
  EXPECT_EQ(tokens->decode(ids{6, 4}), "ab");
  EXPECT_EQ(tokens->decode(ids{6, 4}, false), "<s>ab");
  EXPECT_EQ(with(special + "," + rule, R"({"add_bos_token":false})")->encode("ab"), ids{4});
}

TEST(tokenizer_json, refuses_a_second_template) {
  const std::string one = R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}]})";
  const auto sequence = [](const std::string& parts) {
    return R"("post_processor":{"type":"Sequence","processors":[)" + parts + "]}";
  };
  EXPECT_EQ(with(sequence(R"({"type":"ByteLevel"},)" + one))->encode("ab"), ids{4});
  EXPECT_NE(refusal_of_part(sequence(one + "," + one)).find("post_processor.processors[1]: a second template"),
            std::string::npos);
}

TEST(tokenizer_json, reads_added_tokens_back_as_the_models_own_unless_they_are_special) {
  const std::string added = R"("added_tokens":[{"id":6,"content":"\u2581\u2581"},
    {"id":7,"content":"<end\u2581of\u2581text>","special":true}])";
  const auto tokens = with(added + R"(,"decoder":{"type":"Replace","pattern":{"String":"\u2581"},"content":" "})");
  EXPECT_EQ(tokens->decode(ids{0, 6, 1}), "a  b");
  EXPECT_EQ(tokens->decode(ids{0, 7}, false), "a<end▁of▁text>");
  EXPECT_EQ(with(added + R"(,"decoder":{"type":"ByteLevel"})")->decode(ids{6}), "▁▁");
}

TEST(tokenizer_json, leaves_special_tokens_unread_when_told_so) {
  const auto tokens = with(R"("added_tokens":[{"id":6,"content":"ab a","special":true}])");
  EXPECT_EQ(tokens->encode("ab a", {.add_special = false, .parse_special = false}), (ids{4, 2, 0}));
}

TEST(tokenizer_json, takes_bos_and_eos_from_the_configuration) {
  const std::string added =
      R"("added_tokens":[{"id":6,"content":"<s>","special":true},{"id":7,"content":"</s>","special":false}])";
  const auto tokens = with(added, R"({"add_bos_token":true,"add_eos_token":true,"bos_token":"<s>",
    "eos_token":{"content":"</s>","lstrip":false}})");
  EXPECT_EQ(tokens->encode("ab"), (ids{6, 4, 7}));
  EXPECT_EQ(tokens->eos(), 7);
  EXPECT_TRUE(tokens->is_special(7));
  EXPECT_EQ(with(added, R"({"bos_token":null})")->bos(), std::nullopt);
  EXPECT_EQ(with(added)->bos(), 6);
}

TEST(tokenizer_json, merges_added_tokens_of_the_configuration_with_its_own) {
  const std::string added = R"("added_tokens":[{"id":6,"content":"<t>"},{"id":7,"content":"<s>","special":true}])";
  const auto tokens = with(added, R"({"added_tokens_decoder":{"6":{"content":"<t>","lstrip":true},
    "8":{"content":"<new>"},"5":{"content":"<old>"},"9":{"content":"ab","special":true}}})");
  EXPECT_EQ(tokens->encode("a <t>"), (ids{0, 6})) << "by the configuration's flags";
  EXPECT_EQ(tokens->encode("a<new><s>"), (ids{0, 8, 7}));
  EXPECT_EQ(tokens->find("<old>"), std::nullopt) << "whose id is another's";
  EXPECT_TRUE(tokens->is_special(4)) << "by the vocabulary's id";
  EXPECT_TRUE(tokens->is_special(7));
}

TEST(tokenizer_json, looks_for_tokens_that_the_configuration_calls_special) {
  const std::string added = R"("added_tokens":[{"id":6,"content":"<t>","rstrip":true}])";
  const auto tokens = with(added, R"({"additional_special_tokens":["<t>",{"content":"ab","lstrip":true}]})");
  EXPECT_EQ(tokens->encode("a<t> b", plain), (ids{0, 6, 1}));
  EXPECT_EQ(tokens->encode("a ab", plain), (ids{0, 4}));
  EXPECT_TRUE(with("", R"({"extra_special_tokens":["a"]})")->is_special(0));
  EXPECT_TRUE(with("", R"({"extra_special_tokens":{"start":"a"}})")->is_special(0));
  EXPECT_EQ(with("", R"({"eos_token":"a"})")->encode("ab", plain), (ids{0, 1}));
  EXPECT_NE(refusal_of(tiny_json(letters, "[]"), R"({"additional_special_tokens":["<new>"]})")
                .find("folder/tokenizer_config.json: \"<new>\" is listed as a special token, but has no id: add it"),
            std::string::npos);
}

TEST(tokenizer_json, only_llamas_classes_put_bos_and_eos_where_the_configuration_says) {
  const std::string rest = R"("added_tokens":[{"id":6,"content":"<s>","special":true}],
    "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}],
    "special_tokens":{"<s>":{"id":"<s>","ids":[6],"tokens":["<s>"]}}})";
  const auto encoded = [&](const std::string& kind) {
    return with(rest, R"({"add_bos_token":false,"add_eos_token":true,"bos_token":"<s>","eos_token":"b",)"
                      R"("tokenizer_class":")" +
                          kind + "\"}")
        ->encode("a");
  };
  for (const char* kind : {"LlamaTokenizer", "CodeLlamaTokenizerFast"}) EXPECT_EQ(encoded(kind), (ids{0, 1})) << kind;
  for (const char* kind : {"PreTrainedTokenizerFast", "Qwen2Tokenizer", "GPT2Tokenizer"})
    EXPECT_EQ(encoded(kind), (ids{6, 0})) << kind;
}

TEST(tokenizer_json, a_bos_and_an_eos_of_the_configuration_stand_in_place_of_the_templates) {
  const std::string rest = R"("added_tokens":[{"id":6,"content":"<s>","special":true},{"id":7,"content":"<|im_start|>"},
    {"id":8,"content":"</s>","special":true},{"id":9,"content":"<|im_end|>"}],
    "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}},
    {"SpecialToken":{"id":"</s>"}}],"special_tokens":{"<s>":{"id":"<s>","ids":[6],"tokens":["<s>"]},
    "</s>":{"id":"</s>","ids":[8],"tokens":["</s>"]}}})";
  const auto encoded = [&](const std::string& fields) {
    return with(rest, R"({"bos_token":"<|im_start|>","eos_token":"<|im_end|>",)" + fields + "}")->encode("a");
  };
  for (const std::string kind :
       {R"("tokenizer_class":"LlamaTokenizer",)", R"("tokenizer_class":"LlamaTokenizerFast",)", ""}) {
    EXPECT_EQ(encoded(kind + R"("add_bos_token":true)"), (ids{7, 0, 8})) << kind;
    EXPECT_EQ(encoded(kind + R"("add_bos_token":true,"add_eos_token":true)"), (ids{7, 0, 9})) << kind;
  }
}

TEST(tokenizer_json, llamas_class_has_a_bos_and_an_eos_where_none_is_named) {
  const std::string added = R"("added_tokens":[{"id":6,"content":"<s>"},{"id":7,"content":"</s>"}])";
  const auto tokens = with(added, R"({"tokenizer_class":"LlamaTokenizerFast"})");
  EXPECT_EQ(tokens->bos(), 6);
  EXPECT_EQ(tokens->eos(), 7);
  EXPECT_EQ(with(added, R"({"tokenizer_class":"LlamaTokenizer","eos_token":null})")->eos(), std::nullopt);
  EXPECT_EQ(with(added, R"({"tokenizer_class":"PreTrainedTokenizerFast"})")->eos(), std::nullopt);
  EXPECT_EQ(with("", R"({"tokenizer_class":"LlamaTokenizer"})")->eos(), std::nullopt);
}

TEST(tokenizer_json, makes_spaces_visible_and_invisible_again) {
  const auto tokens = with(R"("pre_tokenizer":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always"},
    "decoder":{"type":"Metaspace","replacement":"\u2581","prepend_scheme":"always"})");
  EXPECT_EQ(tokens->encode("ab a"), (ids{3, 4, 3, 0}));
  EXPECT_EQ(tokens->decode(ids{3, 4, 3, 0}), "ab a");
  EXPECT_TRUE(tokens->strips_leading_space());
  EXPECT_EQ(tokens->bytes_of(3), " ");
  EXPECT_EQ(tokens->find("\u2581"), 3);
}

TEST(tokenizer_json, a_byte_level_puts_a_space_first_where_the_configuration_says_so) {
  const auto first = [](const char* step, const std::string& config) {
    const auto tokens =
        parse(tiny_json(R"({"a":0,"b":1,"\u0120":2})", "[]", std::string(R"("pre_tokenizer":)") + step), config);
    return tokens->encode("ab").front() == 2;
  };
  const char *with = R"({"type":"ByteLevel","add_prefix_space":true})",
             *without = R"({"type":"ByteLevel","add_prefix_space":false})",
             *several = R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel","add_prefix_space":true}]})";
  const std::string off = R"("add_prefix_space":false)", on = R"("add_prefix_space":true)";
  const std::string gpt2 = "\"tokenizer_class\":\"GPT2Tokenizer\",";
  EXPECT_FALSE(first(with, "{" + gpt2 + off + "}"));
  EXPECT_TRUE(first(without, "{" + gpt2 + on + "}"));
  EXPECT_TRUE(first(several, "{" + gpt2 + off + "}"));
  EXPECT_TRUE(first(with, "{" + off + "}"));
  EXPECT_FALSE(first(with, R"({"tokenizer_class":"GPT2Tokenizer"})"));
  EXPECT_TRUE(first(with, "{}"));
  EXPECT_TRUE(first(with, R"({"tokenizer_class":"PreTrainedTokenizerFast",)" + off + "}"));
}

TEST(tokenizer_json, answers_for_ids_that_are_no_tokens) {
  const auto tokens = with("");
  for (const auto id : {-1, 6, 1 << 30}) {
    EXPECT_EQ(tokens->bytes_of(id), "");
    EXPECT_FALSE(tokens->is_special(id));
  }
  EXPECT_EQ(tokens->decode(ids{-1, 4, 99}), "ab");
}

TEST(tokenizer_json, refuses_unsupported_parts_by_name) {
  EXPECT_NE(refusal_of(R"({"model":{"type":"WordPiece","vocab":{"a":0}}})").find("\"WordPiece\""), std::string::npos);
  EXPECT_NE(refusal_of(R"({"model":{"type":"Unigram","vocab":[["a",0]]}})").find("\"Unigram\""), std::string::npos);
  for (const auto* part : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    const auto text = refusal_of_part('"' + std::string(part) + R"(":{"type":"Strange"})");
    EXPECT_NE(text.find(std::string("folder/tokenizer.json: ") + part), std::string::npos) << text;
    EXPECT_NE(text.find("\"Strange\""), std::string::npos) << text;
  }
  EXPECT_NE(refusal_of_part(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFKC"}]})")
                .find("normalizer.normalizers[1]: the normalizer \"NFKC\""),
            std::string::npos);
}

TEST(tokenizer_json, refuses_decoders_that_would_write_something_else) {
  const auto refused_decoder = [](const std::string& decoder) { return refusal_of_part("\"decoder\":" + decoder); };
  const auto says = [](const std::string& text, const char* word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
    EXPECT_EQ(text.find("folder/tokenizer.json: decoder"), 0u) << text;
  };
  says(refused_decoder(R"({"type":"Replace","content":"x"})"), "needs a \"pattern\"");
  says(refused_decoder(R"({"type":"Replace","pattern":{"String":""},"content":"x"})"), "not empty");
  says(refused_decoder(R"({"type":"Replace","pattern":{"String":"a"},"content":")" + std::string(65, 'x') + "\"}"),
       "more than 64 bytes");
  says(refused_decoder(R"({"type":"Strip","content":"x","start":1,"stop":0})"), "only a Strip of one space");
  says(refused_decoder(R"({"type":"Strip","content":" ","start":2,"stop":0})"), "only a Strip of one space");
  says(refused_decoder(R"({"type":"Strip","content":" ","start":0,"stop":1})"), "only a Strip of one space");
  says(refused_decoder(R"({"type":"Metaspace","replacement":""})"), "has no \"replacement\"");
  says(refused_decoder(R"({"type":"Sequence","decoders":[{"type":"Strip","content":" ","start":1},{"type":"Fuse"}]})"),
       "behind the one that strips");
  std::string many = R"({"type":"Sequence","decoders":[)";
  for (int i = 0; i < 65; ++i) many += R"({"type":"Replace","pattern":{"String":"a"},"content":"b"},)";
  says(refused_decoder(many + R"({"type":"Fuse"}]})"), "more than 64 replacements");
}

TEST(tokenizer_json, refuses_a_template_that_is_not_tokens_around_one_text) {
  const auto refused_template = [](const std::string& single, const std::string& rest) {
    return refusal_of_part(R"("post_processor":{"type":"TemplateProcessing","single":[)" + single + "]" + rest + "}");
  };
  const auto says = [](const std::string& text, const char* word) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  const std::string text = R"({"Sequence":{"id":"A"}})", token = R"({"SpecialToken":{"id":"<s>"}})";
  const auto table = [](const std::string& ids) {
    return R"(,"special_tokens":{"<s>":{"id":"<s>","ids":[)" + ids + "]}}";
  };
  says(refused_template(token + "," + text, ""), "has no \"special_tokens\"");
  says(refused_template(token + "," + text, R"(,"special_tokens":{})"), "names the token \"<s>\"");
  says(refused_template(text + "," + text, table("0")), "around one Sequence");
  says(refused_template(token, table("0")), "has no Sequence");
  says(refused_template(token + "," + text, table("-1")), "should be an integer from 0");
  says(refused_template(token + "," + text, table("2147483648")), "should be an integer from 0");
  std::string many;
  for (int i = 0; i < 65; ++i) many += token + ",";
  says(refused_template(many + text, table("0")), "more than 64 tokens");
}

TEST(tokenizer_json, replaces_what_a_pattern_of_its_normalizer_finds) {
  const auto tokens = with(R"("normalizer":{"type":"Replace","pattern":{"Regex":"[xyz]+"},"content":"a"})");
  EXPECT_EQ(tokens->encode("xxb1zy"), (ids{4, 5, 0}));
  EXPECT_EQ(tokens->encode("b1b"), (ids{1, 5, 1}));
  EXPECT_EQ(tokens->encode(""), ids{});
}

TEST(tokenizer_json, an_id_between_those_of_tokens_may_be_none) {
  const auto tokens = parse(tiny_json(R"({"a":0,"b":2})", "[]", R"("added_tokens":[{"id":3,"content":"<s>"}])"));
  EXPECT_EQ(tokens->encode("ab<s>"), (ids{0, 2, 3}));
  EXPECT_EQ(tokens->size(), 4);
  EXPECT_EQ(tokens->bytes_of(1), "");
  EXPECT_EQ(tokens->decode(ids{0, 1, 2}), "ab");
}

TEST(tokenizer_json, names_an_unknown_token_that_is_none_where_no_byte_is_unknown) {
  nlohmann::json vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary[spell(std::string(1, static_cast<char>(byte)))] = byte;
  const auto text = [&](const char* unknown) {
    return nlohmann::json{
        {"model", {{"vocab", vocabulary}, {"merges", nlohmann::json::array()}, {"unk_token", unknown}}},
        {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}}
        .dump();
  };
  for (const char* unknown : {"", "<none>"}) EXPECT_EQ(parse(text(unknown))->encode("a\xFF"), (ids{'a', 255}));
  vocabulary.erase("a");
  vocabulary["<a>"] = 'a';
  EXPECT_NE(refusal_of(text("<none>")).find("\"unk_token\" is \"<none>\", which the vocabulary lacks"),
            std::string::npos);
}

TEST(tokenizer_json, refuses_ids_that_repeat_or_leave_many_holes) {
  EXPECT_NE(refusal_of(tiny_json(R"({"a":0,"b":0})", "[]")).find("share the id 0"), std::string::npos);
  EXPECT_NE(refusal_of(tiny_json(R"({"a":0,"b":70000})", "[]")).find("at most 65536 ids"), std::string::npos);
  EXPECT_NE(refusal_of_part(R"("added_tokens":[{"id":7,"content":"<s>"}])").find("without holes"), std::string::npos);
  EXPECT_NE(refusal_of(tiny_json(R"({"a":-1})", "[]")).find("the id of \"a\""), std::string::npos);
  EXPECT_NE(refusal_of(tiny_json(R"({"a":99999999999})", "[]")).find("the id of \"a\""), std::string::npos);
  EXPECT_NE(refusal_of(tiny_json(R"({"a":0.5})", "[]")).find("the id of \"a\""), std::string::npos);
  EXPECT_NE(refusal_of(tiny_json(R"({"a":0,"a":1})", "[]")).find("twice"), std::string::npos);
  EXPECT_NE(refusal_of_part(R"("added_tokens":[{"id":3,"content":"a"}])").find("two ids"), std::string::npos);
  EXPECT_NE(refusal_of_part(R"("added_tokens":[{"id":3,"content":"new"}])").find("share the id 3"), std::string::npos);
}

TEST(tokenizer_json, refuses_merges_of_unknown_tokens) {
  EXPECT_NE(refusal_of(tiny_json(letters, R"(["a z"])")).find("merge 0 needs the token \"z\""), std::string::npos);
  EXPECT_NE(refusal_of(tiny_json(letters, R"(["b a"])")).find("merge 0 needs the token \"ba\""), std::string::npos);
  for (const auto* merges : {R"(["ab"])", R"(["a b c"])", R"([["a"]])", R"([["a",1]])", "[7]", R"({"a":"b"})", "null"})
    EXPECT_NE(refusal_of(tiny_json(letters, merges)).find("merge"), std::string::npos) << merges;
}

TEST(tokenizer_json, refuses_broken_json_and_wrong_types) {
  for (const auto* text : {"", "{", "[]", "null", "{}", R"({"model":[]})", R"({"model":{"type":7}})", "\xFF\xFE",
                           R"({"model":{"vocab":{},"merges":[]}})", R"({"model":{"vocab":["a"],"merges":[]}})"})
    EXPECT_NE(refusal_of(text).find("folder/tokenizer.json"), std::string::npos) << text;
  for (const auto* rest :
       {R"("added_tokens":{})", R"("added_tokens":[{"id":6}])", R"("added_tokens":[{"content":"x"}])",
        R"("added_tokens":[{"id":6,"content":"x","special":1}])", R"("normalizer":[])",
        R"("pre_tokenizer":{"type":"Split"})", R"("decoder":{"type":"Sequence","decoders":{}})",
        R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"})",
        R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"Odd"})",
        R"("post_processor":{"type":"TemplateProcessing","single":[]})"})
    EXPECT_NE(refusal_of_part(rest).find("folder/tokenizer.json: "), std::string::npos) << rest;
}

TEST(tokenizer_json, refuses_deep_nesting) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += R"({"type":"Sequence","normalizers":[)";
  EXPECT_NE(refusal_of_part("\"normalizer\":" + deep).find("nested deeper"), std::string::npos);
}

TEST(tokenizer_json, refuses_steps_that_make_texts_explode) {
  std::string doubling;
  for (int i = 0; i < 40; ++i)
    doubling += (i ? "," : "") + std::string(R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})");
  const auto tokens = with(R"("normalizer":{"type":"Sequence","normalizers":[)" + doubling + "]}");
  EXPECT_NE(refusal([&] { tokens->encode("a"); }).find("grow"), std::string::npos);
  EXPECT_NE(refusal_of_part(R"("decoder":{"type":"Sequence","decoders":[)" + doubling + "]}").find("grow"),
            std::string::npos);
  const auto more = doubling + "," + doubling;
  EXPECT_NE(refusal_of_part(R"("normalizer":{"type":"Sequence","normalizers":[)" + more + "]}").find("more than 64"),
            std::string::npos);
  EXPECT_NE(refusal_of_part(R"("normalizer":{"type":"Prepend","prepend":")" + std::string(100, 'x') + "\"}")
                .find("more than 64 bytes"),
            std::string::npos);
}

TEST(tokenizer_json, refuses_a_template_with_an_unknown_id) {
  EXPECT_NE(refusal_of_part(R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},
      {"Sequence":{"id":"A"}}],"special_tokens":{"x":{"id":"x","ids":[77]}}})")
                .find("names token id 77"),
            std::string::npos);
}

TEST(tokenizer_json, takes_an_end_token_from_the_configuration_alone) {
  const auto tokens =
      with("", R"({"eos_token":"<end>","bos_token":"","added_tokens_decoder":{"6":{"content":"<end>"}}})");
  EXPECT_EQ(tokens->eos(), 6);
  EXPECT_TRUE(tokens->is_special(6));
  EXPECT_EQ(tokens->bos(), std::nullopt);
  const auto unknown = refusal_of(tiny_json(letters, "[]"), R"({"eos_token":"<end>"})");
  EXPECT_NE(unknown.find("add it to \"added_tokens_decoder\" with its id, or set it to null"), std::string::npos)
      << unknown;
}

TEST(tokenizer_json, refuses_a_configuration_by_its_own_name) {
  const auto good = tiny_json(letters, "[]");
  for (const auto* config :
       {"{", "[]", R"({"bos_token":"missing"})", R"({"bos_token":5})", R"({"eos_token":{}})",
        R"({"add_bos_token":"yes"})", R"({"add_bos_token":true})", R"({"added_tokens_decoder":{"x":{"content":"y"}}})"})
    EXPECT_NE(refusal_of(good, config).find("folder/tokenizer_config.json"), std::string::npos) << config;
}

}  // namespace
}  // namespace troupe
