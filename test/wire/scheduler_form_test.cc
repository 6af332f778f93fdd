// SPDX-License-Identifier: Apache-2.0
//
// ExtenderArgs in the form of kube-scheduler is read by a lane of its own. Both lanes must give the
// same message, whatever is in the text.
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::scheduler_form_test {
namespace {

using test::Json;
using test::Padded;

constexpr std::string_view kMark = ",\"Nodes\":null,\"NodeNames\":[";

const PodRules& Rules() {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  return rules;
}

const NodeNameTable& Names() {
  static const NodeNameTable names(
      std::vector<std::string>{"a", "ab", "b", "node-1", "node-10", "node-2", "z"});
  return names;
}

Result<ExtenderArgs> Decode(const std::string& body) {
  PaddedText text = Padded(body);
  auto args = DecodeExtenderArgs(text, Rules(), Names());
  EXPECT_EQ(text.str(), body) << "the text was not left as it was";
  return args;
}

void ExpectSameArgs(const ExtenderArgs& fast, const ExtenderArgs& slow, const std::string& body) {
  EXPECT_EQ(fast.known, slow.known) << body;
  EXPECT_EQ(fast.unknown, slow.unknown) << body;
  EXPECT_EQ(fast.has_names, slow.has_names) << body;
  EXPECT_EQ(fast.has_items, slow.has_items) << body;
  EXPECT_EQ(fast.items.size(), slow.items.size()) << body;
  ASSERT_EQ(fast.pod.has_value(), slow.pod.has_value()) << body;
  if (!fast.pod) return;
  EXPECT_EQ(fast.pod->id, slow.pod->id) << body;
  EXPECT_EQ(fast.pod->shape, slow.pod->shape) << body;
  EXPECT_EQ(fast.pod->refusal, slow.pod->refusal) << body;
}

// The same message in a form that the fast lane does not take: "Nodes":null stands at the end.
std::string WithoutTheMark(std::string_view pod, std::string_view names) {
  std::string body = R"({"NodeNames":[)";
  return body.append(names).append("],\"Pod\":").append(pod).append(",\"Nodes\":null}");
}

std::string WithTheMark(std::string_view pod, std::string_view names) {
  std::string body = R"({"Pod":)";
  return body.append(pod).append(kMark).append(names).append("]}");
}

template <class List>
const auto& AnyOf(Random& random, const List& list) {
  return list[random.Below(std::size(list))];
}

std::string RandomNames(Random& random) {
  static const std::string names[] = {R"("a")",
                                      R"("ab")",
                                      R"("b")",
                                      R"("node-1")",
                                      R"("node-10")",
                                      R"("node-2")",
                                      R"("z")",
                                      R"("ghost")",
                                      R"("no\nde")",
                                      R"("\u0061")",
                                      R"("ä€😀")",
                                      R"("\ud83d\ude00")",
                                      R"("a\"b")",
                                      R"("]}")",
                                      R"("")",
                                      R"("A")",
                                      R"("node-100")",
                                      R"("node-")",
                                      R"(",\"Nodes\":null,\"NodeNames\":[")"};
  static const std::string gaps[] = {"", "", "", "", "", " ", "\n", "\t "};
  std::string text = AnyOf(random, gaps);
  const std::uint64_t count = random.Below(9);
  for (std::uint64_t i = 0; i < count; ++i) {
    // One draw a statement: in which order operands are computed is up to the compiler.
    if (i > 0) {
      text += AnyOf(random, gaps) + ",";
      text += AnyOf(random, gaps);
    }
    // Mostly plain ones, or the fast lane would hardly ever be taken to the end.
    text += random.Below(8) == 0 ? AnyOf(random, names) : names[random.Below(8)];
  }
  return text + AnyOf(random, gaps);
}

std::string RandomPod(Random& random) {
  static const std::string pods[] = {
      R"({})",
      R"({"metadata":{"name":"p","namespace":"ns","uid":"u"}})",
      R"({"metadata":{"uid":"u","annotations":{"x":",\"Nodes\":null,\"NodeNames\":["}}})",
      R"({"spec":{"containers":[{"name":"c","resources":{"requests":{"nvidia.com/gpu":"2"}}}]}})",
      R"({"x":{"y":1,"Nodes":null,"NodeNames":["a","b"]},"metadata":{"uid":"inner"}})",
      R"({"metadata":{"uid":"u","Nodes":null,"NodeNames":[]}})",
      R"({"a":[{"b":1,"Nodes":null,"NodeNames":["z"]}],"metadata":{"name":"n"}})",
      R"({ "metadata" : { "uid" : "w" } })",
      R"({"metadata":{"uid":"}\\\"{"}})",
      R"({"spec":{"containers":[{"resources":{"requests":{"cpu":"nonsense"}}}]}})",
      "null"};
  return AnyOf(random, pods);
}

TEST(SchedulerForm, BothLanesGiveTheSameMessage) {
  Random random(20'260'301);
  for (int i = 0; i < 4000; ++i) {
    const std::string pod = RandomPod(random), names = RandomNames(random);
    const std::string marked = WithTheMark(pod, names), plain = WithoutTheMark(pod, names);
    const auto fast = Decode(marked), slow = Decode(plain);
    ASSERT_TRUE(fast.has_value()) << marked << " " << fast.error().message;
    ASSERT_TRUE(slow.has_value()) << plain << " " << slow.error().message;
    ExpectSameArgs(*fast, *slow, marked);
  }
}

TEST(SchedulerForm, NamesAreEachTakenOnceInTheOrderOfTheRequest) {
  const auto args = Decode(WithTheMark("{}", R"("z","ghost","a","z","spook","ghost","ab")"));
  ASSERT_TRUE(args);
  EXPECT_EQ(args->known, (std::vector<NodeIndex>{6, 0, 1}));
  EXPECT_EQ(args->unknown, (std::vector<std::string>{"ghost", "spook"}));
}

TEST(SchedulerForm, TheOrderOfTheLastListIsOnlyAGuess) {
  const NodeNameTable names(std::vector<std::string>{"a", "aa", "aaa", "b"});
  const char* const lists[] = {R"("a","aa","b")", R"("aa","a","aaa")", R"("b","aaa","aa","a")",
                               R"("a")", R"("aaaa","a")"};
  for (int round = 0; round < 3; ++round) {
    for (const char* list : lists) {
      PaddedText text = Padded(WithTheMark("{}", list));
      const auto args = DecodeExtenderArgs(text, Rules(), names);
      ASSERT_TRUE(args);
      std::string read;
      for (const std::string& name : args->unknown) read.append(",\"").append(name).append("\"");
      for (const NodeIndex index : args->known) {
        read.append(",\"").append(names.name(index)).append("\"");
      }
      EXPECT_EQ(read.substr(1), list);
    }
  }
}

TEST(SchedulerForm, TheMarkInsideAStringIsText) {
  const auto args =
      Decode(R"({"Pod":{"metadata":{"uid":",\"Nodes\":null,\"NodeNames\":[\"a\"]}"}},)"
             R"("Nodes":null,"NodeNames":["b"]})");
  ASSERT_TRUE(args && args->pod);
  EXPECT_EQ(args->pod->id.uid, ",\"Nodes\":null,\"NodeNames\":[\"a\"]}");
  EXPECT_EQ(args->known, std::vector<NodeIndex>{2});
}

TEST(SchedulerForm, TheMarkInsideANestedObjectIsNotTheListOfNames) {
  const auto nested = Decode(R"({"Pod":{"x":1,"Nodes":null,"NodeNames":["a"]},"NodeNames":["b"]})");
  ASSERT_TRUE(nested && nested->pod);
  EXPECT_EQ(nested->known, std::vector<NodeIndex>{2});
  const auto only = Decode(R"({"Pod":{"x":1,"Nodes":null,"NodeNames":["a"]}})");
  ASSERT_TRUE(only && only->pod);
  EXPECT_FALSE(only->has_names);
}

TEST(SchedulerForm, OfAListThatIsThereTwiceTheLastCounts) {
  for (const char* body :
       {R"({"NodeNames":["a"],"Pod":{},"Nodes":null,"NodeNames":["b"]})",
        R"({"NodeNames":["a"],"Pod":{},"NodeNames":["b"]})",
        R"({"Pod":{},"Nodes":null,"NodeNames":["a"],"nodenames":["b"]})",
        R"({"Pod":{},"Nodes":null,"NodeNames":["z"],"Nodes":null,"NodeNames":["b"]})"}) {
    const auto args = Decode(body);
    ASSERT_TRUE(args) << body;
    EXPECT_EQ(args->known, std::vector<NodeIndex>{2}) << body;
  }
}

TEST(SchedulerForm, WhiteSpaceAfterTheEndIsFineAndAnythingElseIsNot) {
  EXPECT_TRUE(Decode(WithTheMark("{}", R"("a")") + " \r\n\t"));
  for (const char* rest : {"x", "{}", "]", "}", ",", "\"", "null", "  \n 1"}) {
    for (const char* names : {R"("a","ghost")", ""}) {
      EXPECT_FALSE(Decode(WithTheMark("{}", names) + rest)) << rest;
      EXPECT_FALSE(Decode(WithoutTheMark("{}", names) + rest)) << rest;
    }
  }
}

TEST(SchedulerForm, AListThatIsNotOneIsAnError) {
  for (const char* names : {R"("a",)", R"(,"a")", R"("a""b")", R"("a" "b")", R"("a",,"b")", R"(1)",
                            R"("a",null)", R"({})", R"(["a"])", R"("a)", "\"\x01\"", "\"\xff\"",
                            R"("\x")", R"("\ud800")", R"("a"],"x":[)"}) {
    const std::string body = WithTheMark("{}", names);
    EXPECT_FALSE(Decode(body) && std::string_view(names).find('x') == std::string_view::npos)
        << body;
    EXPECT_EQ(Decode(body).has_value(), Decode(WithoutTheMark("{}", names)).has_value()) << body;
  }
}

TEST(SchedulerForm, ABodyCutShortAtAnyByteIsAnErrorAndLeftAsItWas) {
  const std::string pod =
      R"({"metadata":{"name":"p\u00e9","uid":"u1","annotations":{"k":"v\\"}},"spec":{"containers":)"
      R"([{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}],"x":[1,2.5,true,null]}})";
  for (const std::string& body :
       {WithTheMark(pod, R"("a","ghost","node-\u0031")"), WithoutTheMark(pod, R"("a","ghost")")}) {
    ASSERT_TRUE(Decode(body)) << body;
    for (std::size_t length = 0; length < body.size(); ++length) {
      const auto args = Decode(body.substr(0, length));
      EXPECT_FALSE(args.has_value()) << body.substr(0, length);
      if (!args) {
        EXPECT_EQ(args.error().code, Errc::kInvalidArgument);
        EXPECT_FALSE(args.error().message.empty());
      }
    }
  }
}

TEST(SchedulerForm, AnyByteMayBeWrongWithoutHarm) {
  const std::string body = WithTheMark(
      R"({"metadata":{"uid":"u"},"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}})",
      R"("a","ghost")");
  int decoded = 0, refused = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    for (const char c : {'\0', '"', '\\', '{', '}', '[', ']', ',', ':', ' ', '9', '\x80', '\xff'}) {
      std::string broken = body;
      broken[at] = c;
      ++(Decode(broken) ? decoded : refused);
    }
  }
  EXPECT_GT(decoded, 0);
  EXPECT_GT(refused, decoded);
}

}  // namespace
}  // namespace berth::wire::scheduler_form_test
