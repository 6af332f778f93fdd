// SPDX-License-Identifier: Apache-2.0
#include "server/wire/json/json_text.h"

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::wire::json_check_test {
namespace {

using test::Json;

bool IsJson(std::string_view text) { return CheckJson(text).has_value(); }

std::string Nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(CheckJson, TakesEveryKindOfValue) {
  for (const char* text :
       {"{}", "[]", " { } ", "null", "true", "false", "0", "-0", "-12.50e+07", "1E-2", "\"\"",
        R"("a\"\\\/\b\f\n\r\t\u00e4\uD800")", R"({"a":[1,{"b":null},"c"],"a":{}})", "[\n1,\t2\r]",
        "[[],{},[{}]]", "\"\x7f\xc3\xa4 longer than eight bytes\""}) {
    EXPECT_TRUE(IsJson(text)) << text;
  }
}

TEST(CheckJson, SaysWhereAndWhatWasWanted) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "JSON: byte 0: want a value"},
      {"{\"a\":}", "JSON: byte 5: want a value"},
      {"[1,]", "JSON: byte 3: want a value"},
      {"[1 2]", "JSON: byte 3: want , or ]"},
      {"{\"a\":1]", "JSON: byte 6: want , or }"},
      {"{,}", "JSON: byte 1: want a key"},
      {"{\"a\":1,}", "JSON: byte 7: want a key"},
      {"{1:1}", "JSON: byte 1: want a key"},
      {"{\"a\" 1}", "JSON: byte 5: want a colon"},
      {"[1]]", "JSON: byte 3: want one JSON value and nothing after it"},
      {"[01]", "JSON: byte 2: want , or ]"},
      {"[1.]", "JSON: byte 3: want a digit"},
      {"[1e]", "JSON: byte 3: want a digit"},
      {"[-]", "JSON: byte 2: want a value"},
      {"[+1]", "JSON: byte 1: want a value"},
      {"[nul]", "JSON: byte 1: want a value"},
      {"[NaN]", "JSON: byte 1: want a value"},
      {"\"abc", "JSON: byte 4: want the end of a string"},
      {"\"a\nbcdefghij\"", "JSON: byte 2: want no control character in a string"},
      {"\"abcdefgh\\x\"", "JSON: byte 9: want an escape"},
      {"\"\\u12g4\"", "JSON: byte 1: want an escape"},
      {"\"\\", "JSON: byte 1: want an escape"}};
  for (const auto& [text, error] : cases) {
    const Status checked = CheckJson(text);
    ASSERT_FALSE(checked) << text;
    EXPECT_EQ(checked.error().message, error) << text;
  }
}

TEST(CheckJson, BoundsLevelsAndValues) {
  EXPECT_TRUE(IsJson(Nested(kMostJsonLevels)));
  EXPECT_FALSE(IsJson(Nested(kMostJsonLevels + 1)));
  EXPECT_FALSE(IsJson(std::string(10'000'000, '[')));
  std::string many = "[0";
  for (std::size_t i = 0; i < kMostJsonTokens / 2; ++i) many += ",0";
  EXPECT_FALSE(IsJson(many + "]"));
}

// A request whose bytes are changed at random is JSON to us exactly where it is to nlohmann, but
// for UTF-8.
TEST(CheckJson, AgreesWithAParserOnMutants) {
  const std::string seed =
      test::ArgsWithNames(test::PodWithGpus("1", 2), {"n1", "n2", "a \"quoted\" \\ one\n"});
  constexpr std::string_view kBytes = "{}[],:\"\\ 0123456789.-+eEtrufalsn\n\x01x";
  std::mt19937 random(1);
  int valid = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text = seed;
    for (std::size_t n = random() % 3 + 1; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.erase(at, random() % 4);
          break;
        default:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
      }
    }
    const bool want = Json::accept(text);
    valid += want ? 1 : 0;
    EXPECT_EQ(IsJson(text), want) << text;
  }
  EXPECT_GT(valid, 1000);
}

// In every form of a request, and in every part of it that nobody reads.
TEST(CheckJson, IsAskedAboutWholeRequests) {
  const test::TestService service({test::MachineWith("n1", 4)});
  const std::string pod = test::PodWithGpus("1", 1).dump();
  const std::string names = R"(,"Nodes":null,"NodeNames":["n1"]})";
  const std::string node = R"({"metadata":{"name":"n1"},"status":{"images":[@]}})";
  const auto with = [](std::string text, const std::string& part) {
    return text.replace(text.find('@'), 1, part);
  };
  const std::string unread = pod.substr(0, pod.size() - 1) + R"(,"unread":{"x":[@]}})";
  const std::string forms[] = {
      R"({"Pod":)" + unread + names, R"({"unread":[@],"Pod":)" + pod + names,
      R"({"Pod":)" + pod + R"(,"NodeNames":["n1"],"unread":[@]})",
      R"({"Pod":)" + pod + R"(,"Nodes":{"items":[)" + node + R"(]},"NodeNames":null})"};
  for (const std::string& form : forms) {
    EXPECT_EQ(service.StatusOf("filter", with(form, "1")), 200) << form;
    for (const char* part : {"1,", "1 2", "nul", "01", "{\"a\"}", "\"\\x\"", "1.", "]["}) {
      EXPECT_EQ(service.StatusOf("filter", with(form, part)), 400) << form << " " << part;
      EXPECT_EQ(service.StatusOf("prioritize", with(form, part)), 400) << form << " " << part;
    }
  }
  EXPECT_EQ(service.StatusOf("preempt", R"({"Pod":)" + with(unread, "nul") + "}"), 400);
  EXPECT_EQ(service.StatusOf("bind", R"({"PodName":"p","unread":[1,]})"), 400);
  const http::HttpResponse passed =
      service.Call("POST", "/extender/filter", with(forms[3], " 1.50 , \"\\u00e4\" "));
  EXPECT_NE(passed.body.find(with(node, " 1.50 , \"\\u00e4\" ")), std::string::npos)
      << "valid nodes are passed through byte for byte";
}

}  // namespace
}  // namespace berth::wire::json_check_test
