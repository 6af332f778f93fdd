// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/api_json.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::wire::watch_json_test {
namespace {

using test::Padded;

struct Decoded {
  Result<ListPage> page;
  std::vector<std::string> items;
};

Decoded DecodeList(std::string_view text) {
  std::vector<std::string> items;
  auto page =
      DecodeListPage(Padded(text), [&](std::string_view item) { items.emplace_back(item); });
  return {std::move(page), std::move(items)};
}

Result<WatchEvent> Refused(std::string_view text) {
  const PaddedText line = Padded(text);
  return DecodeWatchEvent(line);
}

TEST(DecodeListPage, PassesObjectsOnByteForByte) {
  const Decoded decoded = DecodeList(
      R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12","continue":"a+b/c=",)"
      R"("remainingItemCount":7},"items":[{"metadata":{"name":"\u00e9\"}{"}},{ "a": [ {} ] },{}]})");
  ASSERT_TRUE(decoded.page) << decoded.page.error().message;
  EXPECT_EQ(decoded.page->resource_version, "12");
  EXPECT_EQ(decoded.page->next, "a+b/c=");
  EXPECT_EQ(decoded.items, (std::vector<std::string>{R"({"metadata":{"name":"\u00e9\"}{"}})",
                                                     R"({ "a": [ {} ] })", "{}"}));
}

TEST(DecodeListPage, TakesItemsBeforeMetadataAndNoItemsAtAll) {
  EXPECT_EQ(DecodeList(R"({"items":[{"a":1}],"metadata":{"resourceVersion":"1"}})").items.size(),
            1U);
  for (const char* items : {"", R"(,"items":null)", R"(,"items":[])"}) {
    const Decoded decoded = DecodeList(
        std::string(R"({"metadata":{"resourceVersion":"3","continue":null})") + items + "}");
    ASSERT_TRUE(decoded.page) << items;
    EXPECT_EQ(decoded.page->next, "");
    EXPECT_TRUE(decoded.items.empty());
  }
}

TEST(DecodeListPage, RefusesWhatIsCutOffAnywhere) {
  const std::string whole =
      R"({"metadata":{"resourceVersion":"12"},"items":[{"a":{"b":"c"}},{"d":[1]}]})";
  ASSERT_TRUE(DecodeList(whole).page);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(DecodeList(whole.substr(0, length)).page) << whole.substr(0, length);
  }
}

TEST(DecodeListPage, RefusesWhatIsNoList) {
  for (const char* text : {"[]", "null", R"({"items":[]})", R"({"metadata":{},"items":[]})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[1]})",
                           R"({"metadata":{"resourceVersion":"1"},"items":{}})",
                           R"({"metadata":{"resourceVersion":1},"items":[]})",
                           R"({"metadata":{"resourceVersion":"1"},"items":[]}{})"}) {
    const Decoded decoded = DecodeList(text);
    ASSERT_FALSE(decoded.page) << text;
    EXPECT_EQ(decoded.page.error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(decoded.page.error().message.starts_with("list")) << decoded.page.error().message;
  }
}

TEST(DecodeListHead, IsThereAsSoonAsTheObjectsBegin) {
  const std::string head =
      R"({"kind":"PodList","metadata":{"resourceVersion":"1","continue":"\"items\":[\u0061"},)"
      R"("items":[)";
  const std::string whole = head + R"({"items":[1],"metadata":{"continue":"no"}},{}]})";
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const auto found = DecodeListHead(std::string_view(whole).substr(0, length));
    ASSERT_EQ(found.has_value(), length >= head.size()) << length;
    if (found) {
      EXPECT_EQ(found->next, R"("items":[a)");
    }
  }
}

TEST(DecodeListHead, IsNotThereBehindTheObjectsOrWithoutAVersion) {
  for (const char* begin :
       {R"({"items":[{"a":1}],"metadata":{"resourceVersion":"1","continue":"a"}})",
        R"({"metadata":{"continue":"a"},"items":[)", R"({"other":{"items":[)", R"("items":[)",
        ""}) {
    EXPECT_FALSE(DecodeListHead(begin)) << begin;
  }
}

TEST(DecodeWatchEvent, ReadsEveryType) {
  struct Case {
    const char* word;
    WatchEventType type;
  };
  for (const Case& c :
       {Case{"ADDED", WatchEventType::kAdded}, Case{"MODIFIED", WatchEventType::kModified},
        Case{"DELETED", WatchEventType::kDeleted}, Case{"BOOKMARK", WatchEventType::kBookmark}}) {
    const std::string object =
        R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"77"},"spec":{}})";
    const PaddedText line =
        Padded(std::string(R"({"type":")") + c.word + R"(","object":)" + object + "}");
    const auto event = DecodeWatchEvent(line);
    ASSERT_TRUE(event) << event.error().message;
    EXPECT_EQ(event->type, c.type);
    EXPECT_EQ(event->kind, "Pod");
    EXPECT_EQ(event->resource_version, "77");
    EXPECT_EQ(event->object, object);
  }
}

TEST(DecodeWatchEvent, TakesAnyOrderAndBlanks) {
  const PaddedText line = Padded(
      R"( { "object" : { "metadata" : { "x":[{}], "resourceVersion" : "5"  } , "kind" : "Node" } ,)"
      R"( "type" : "ADDED" } )");
  const auto event = DecodeWatchEvent(line);
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->type, WatchEventType::kAdded);
  EXPECT_EQ(event->resource_version, "5");
  EXPECT_TRUE(event->object.starts_with("{ \"metadata\""));
}

TEST(DecodeWatchEvent, HandsTheStatusOfAnErrorOn) {
  const PaddedText line =
      Padded(R"j({"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},)j"
             R"j("status":"Failure","message":"too old: 1 (9)","reason":"Expired","code":410}})j");
  const auto event = DecodeWatchEvent(line);
  ASSERT_TRUE(event) << event.error().message;
  EXPECT_EQ(event->type, WatchEventType::kError);
  const ApiStatus status = DecodeStatus(event->object);
  EXPECT_EQ(status.code, 410);
  EXPECT_EQ(status.reason, "Expired");
  EXPECT_EQ(status.message, "too old: 1 (9)");
}

TEST(DecodeWatchEvent, RefusesWhatIsNone) {
  const std::string object = R"({"metadata":{"resourceVersion":"1"}})";
  for (const std::string& line :
       {std::string(), std::string("hello"), std::string("{}"), std::string(R"({"type":"ADDED"})"),
        "{\"object\":" + object + "}", "{\"type\":\"SEEN\",\"object\":" + object + "}",
        std::string("{\"type\":\"ADDED\",\"object\":{}}"),
        std::string("{\"type\":\"ADDED\",\"object\":7}"),
        std::string("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":1}}}")}) {
    const auto event = Refused(line);
    ASSERT_FALSE(event) << line;
    EXPECT_TRUE(event.error().message.starts_with("watch event: ")) << event.error().message;
  }
}

TEST(DecodeWatchEvent, RefusesALineThatIsCutOffAnywhere) {
  const std::string whole =
      R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"1"},"spec":{"a":["b"]}}})";
  ASSERT_TRUE(Refused(whole));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(Refused(whole.substr(0, length))) << whole.substr(0, length);
  }
}

TEST(DecodeStatus, KeepsTheBeginningOfWhatIsNone) {
  EXPECT_EQ(DecodeStatus("bad gateway").message, "bad gateway");
  EXPECT_EQ(DecodeStatus(std::string(1000, 'x')).message.size(), 200U);
  EXPECT_EQ(DecodeStatus("").message, "");
  EXPECT_EQ(DecodeStatus(R"({"kind":"Status","code":"many"})").code, 0);
  EXPECT_EQ(DecodeStatus(R"({"kind":"Status","message":null,"code":403})").code, 403);
}

}  // namespace
}  // namespace berth::wire::watch_json_test
