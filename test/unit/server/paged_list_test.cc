// SPDX-License-Identifier: Apache-2.0
#include "server/kube/client/api_client.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/scripted_api_client.h"

namespace berth::kube::paged_list_test {
namespace {

using test::ScriptedApiClient;
using Step = ScriptedApiClient::Step;
using Lines = std::vector<std::string>;

class PagedListTest : public testing::Test {
 protected:
  Result<std::string> List(std::deque<Step> steps) {
    const std::size_t calls = steps.size();
    ScriptedApiClient client(std::move(steps));
    auto version = ListPages(
        client, request_, stop_.get_token(),
        [this](const PaddedText& object) { objects_.push_back(object.str()); }, refusal_);
    paths_ = client.AwaitCalls(calls);
    return version;
  }

  ListRequest request_{.path = "/api/v1/pods", .query = "fieldSelector=a!=b", .page_items = 2};
  std::stop_source stop_;
  ApiResponse refusal_;
  Lines objects_, paths_;
};

TEST_F(PagedListTest, TheTokenOfTheNextPageIsEscaped) {
  const auto version =
      List({{.pieces = {R"({"metadata":{"resourceVersion":"1","continue":"a+b/c=&limit=1"},)",
                        R"("items":[{"x":1},{"x":2}]})"}},
            {.pieces = {R"({"metadata":{"resourceVersion":"9"},"items":[{"x":3}]})"}}});
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(*version, "9");
  EXPECT_EQ(objects_, (Lines{R"({"x":1})", R"({"x":2})", R"({"x":3})"}));
  EXPECT_EQ(paths_, (Lines{"/api/v1/pods?limit=2&fieldSelector=a!=b",
                           "/api/v1/pods?limit=2&fieldSelector=a!=b"
                           "&continue=a%2Bb%2Fc%3D%26limit%3D1"}));
}

TEST_F(PagedListTest, TheNextPageIsFetchedWhileThisOneIsHandedOver) {
  ScriptedApiClient client(
      {{.pieces = {R"({"metadata":{"resourceVersion":"1","continue":"a"},"items":[{},{}]})"}},
       {.pieces = {R"({"metadata":{"resourceVersion":"2"},"items":[{}]})"}}});
  std::vector<std::size_t> asked;
  const auto version = ListPages(
      client, request_, stop_.get_token(),
      [&](const PaddedText&) { asked.push_back(client.AwaitCalls(2).size()); }, refusal_);
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(*version, "2");
  EXPECT_EQ(asked, (std::vector<std::size_t>{2, 2, 2}));
}

TEST_F(PagedListTest, APageThatCannotBeReadEndsTheListAlthoughTheNextIsFetched) {
  const auto version =
      List({{.pieces = {R"({"metadata":{"resourceVersion":"1","continue":"a"},"items":[{},5]})"}},
            {.pieces = {R"({"metadata":{"resourceVersion":"2"},"items":[{}]})"}}});
  ASSERT_FALSE(version);
  EXPECT_EQ(objects_.size(), 1U);
}

// Pages of two objects. Of the second and the third, what stands behind the head comes when the
// page after it was asked for.
class InPieces final : public ApiClient {
 public:
  explicit InPieces(std::size_t pages) : pages_(pages) {}

  Result<ApiResponse> Send(const ApiRequest&) override {
    return Fail(Errc::kUnavailable, "a list is streamed");
  }
  Result<ApiResponse> Stream(const std::string& path, Duration, const std::stop_token& stop,
                             const StreamSink& sink) override {
    const std::size_t at = path.find("continue=");
    const std::size_t page = at == std::string::npos ? 1 : std::stoul(path.substr(at + 9));
    Asked(page);
    const std::string next = page < pages_ ? std::to_string(page + 1) : "";
    if (!sink(R"({"metadata":{"resourceVersion":"7","con)")) return ApiResponse{200, "", {}};
    if (!sink("tinue\":\"" + next + "\"},\"items\":[")) return ApiResponse{200, "", {}};
    if (page == 2 || page == 3) AwaitAsked(page + 1, stop);
    const std::string rest =
        "{\"i\":" + std::to_string(2 * page) + "},{\"i\":" + std::to_string(2 * page + 1) + "}]}";
    sink(rest);
    return ApiResponse{200, "", {}};
  }

  // The last page that was asked for, once that one was or stop was requested.
  std::size_t AwaitAsked(std::size_t page, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return last_ >= page; });
    return last_;
  }

 private:
  void Asked(std::size_t page) {
    const std::scoped_lock lock(mutex_);
    last_ = std::max(last_, page);
    changed_.notify_all();
  }

  const std::size_t pages_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t last_ = 0;
};

TEST_F(PagedListTest, ThePageAfterTheNextIsAskedForAsSoonAsThatOneNamesIt) {
  InPieces client(6);
  const auto version = ListPages(
      client, request_, stop_.get_token(),
      [&](const PaddedText& object) {
        const std::size_t page = std::stoul(object.str().substr(5)) / 2;
        objects_.push_back(object.str());
        // One is read and two are there, or come: none is asked for beyond these.
        const std::size_t last = client.AwaitAsked(std::min<std::size_t>(page + 2, 6), {});
        EXPECT_LE(last, page + 2);
      },
      refusal_);
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(*version, "7");
  EXPECT_EQ(objects_.size(), 12U);
  EXPECT_EQ(objects_.back(), R"({"i":13})");
}

TEST_F(PagedListTest, AListThatFailsStopsThePagesThatAreOnTheirWay) {
  const std::string second =
      R"({"metadata":{"resourceVersion":"1","continue":"b"},"items":[{},5]})";
  ScriptedApiClient client(
      {{.pieces = {R"({"metadata":{"resourceVersion":"1","continue":"a"},"items":[{},{}]})"}},
       {.pieces = {second}},
       {.hang = true}});
  const auto version = ListPages(
      client, request_, stop_.get_token(), [&](const PaddedText&) { client.AwaitCalls(3); },
      refusal_);
  EXPECT_FALSE(version);
}

TEST_F(PagedListTest, ARefusalComesWithItsStatusAndItsReason) {
  const auto version = List(
      {{.status = 403,
        .pieces = {R"({"kind":"Status","code":403,"reason":"Forbidden","message":"not you"})"}}});
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().message, "403 Forbidden: not you");
  EXPECT_EQ(refusal_.status, 403);
}

TEST_F(PagedListTest, AnObjectThatIsTooLongIsAnErrorAndNotAShorterList) {
  request_.page_items = 1;
  request_.max_page_bytes = 30;
  request_.max_object_bytes = 60;
  const auto version = List({{.pieces = {R"({"metadata":{"resourceVersion":"1"},"items":[{"x":1},)",
                                         R"({"x":2},{"x":3}]})"}}});
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().message, "an object of more than 60 bytes");
  EXPECT_TRUE(objects_.empty());
}

// A collection whose objects have these sizes, in pieces of 64 bytes. It counts what is taken.
class Collection final : public ApiClient {
 public:
  explicit Collection(std::vector<std::size_t> sizes) : sizes_(std::move(sizes)) {}

  Result<ApiResponse> Send(const ApiRequest&) override {
    return Fail(Errc::kUnavailable, "a list is streamed");
  }
  Result<ApiResponse> Stream(const std::string& path, Duration, const std::stop_token&,
                             const StreamSink& sink) override {
    const std::size_t most = NumberIn(path, "limit="), begin = NumberIn(path, "continue=");
    {
      const std::scoped_lock lock(mutex_);
      limits.push_back(most);
      if (limits.size() == expires_at)
        return ApiResponse{410, R"({"kind":"Status","code":410})", {}};
    }
    const std::string page = PageOf(begin, std::min(begin + most, sizes_.size()));
    std::size_t taken = 0;
    for (std::size_t at = 0; at < page.size(); at += 64) {
      const std::string_view piece = std::string_view(page).substr(at, 64);
      taken += piece.size();
      {
        const std::scoped_lock lock(mutex_);
        most_taken = std::max(most_taken, taken);
      }
      if (!sink(piece)) break;
    }
    return ApiResponse{200, "", {}};
  }

  std::vector<std::size_t> limits;  // that were asked for
  std::size_t most_taken = 0;       // bytes of one answer
  std::size_t expires_at = 0;       // the call that is answered 410; 0 = none

 private:
  static std::size_t NumberIn(const std::string& path, const std::string& key) {
    const std::size_t at = path.find(key);
    return at == std::string::npos ? 0 : std::stoul(path.substr(at + key.size()));
  }
  [[nodiscard]] std::string PageOf(std::size_t begin, std::size_t end) const {
    const std::string next = end < sizes_.size() ? std::to_string(end) : "";
    std::string text =
        R"({"metadata":{"resourceVersion":"7","continue":")" + next + "\"},\"items\":[";
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin) text += ',';
      text += "{\"i\":" + std::to_string(i) + ",\"x\":\"" + std::string(sizes_[i], 'x') + "\"}";
    }
    return text + "]}";
  }

  const std::vector<std::size_t> sizes_;
  std::mutex mutex_;
};

class LargeObjectsTest : public PagedListTest {
 protected:
  LargeObjectsTest() {
    request_.page_items = 500;
    request_.max_page_bytes = 4000;
    request_.max_object_bytes = 8000;
  }
  Result<std::string> List(Collection& collection) {
    return ListPages(
        collection, request_, stop_.get_token(),
        [this](const PaddedText& object) { objects_.push_back(NumberOf(object.str())); }, refusal_);
  }
  static std::string NumberOf(const std::string& object) {
    return object.substr(5, object.find(',') - 5);
  }
  void ExpectAll(std::size_t count) const {
    ASSERT_EQ(objects_.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(objects_[i], std::to_string(i));
  }
};

TEST_F(LargeObjectsTest, AnyNumberOfThemIsListedInPagesOfFewer) {
  Collection collection(std::vector<std::size_t>(68, 1000));
  const auto version = List(collection);
  ASSERT_TRUE(version) << version.error().message;
  EXPECT_EQ(*version, "7");
  ExpectAll(68);
  EXPECT_LE(collection.most_taken, 4000 + 64U);  // and the piece that was too much
  // 500, 250, 125, 62, 31, 15 and 7 are too many; what is found is kept.
  const std::vector<std::size_t> halved = {500, 250, 125, 62, 31, 15, 7, 3, 3, 3};
  ASSERT_GE(collection.limits.size(), 10U);
  EXPECT_EQ(std::vector(collection.limits.begin(), collection.limits.begin() + 10), halved);
  EXPECT_EQ(collection.limits.size(), 7 + 23U);
}

TEST_F(LargeObjectsTest, ALargeOneComesAlone) {
  Collection collection({10, 10, 7000, 10, 7000, 7000, 10});
  const auto version = List(collection);
  ASSERT_TRUE(version) << version.error().message;
  ExpectAll(7);
  EXPECT_LE(collection.most_taken, 8000U);
}

TEST_F(LargeObjectsTest, SmallPagesGrowAgain) {
  std::vector<std::size_t> sizes(300, 1);
  std::fill_n(sizes.begin(), 8, 3000);
  request_.page_items = 64;
  Collection collection(sizes);
  const auto version = List(collection);
  ASSERT_TRUE(version) << version.error().message;
  ExpectAll(300);
  EXPECT_GE(collection.limits.back(), 32U);
  EXPECT_LT(collection.limits.size(), 40U);
}

// The page after a small one was asked for with its head already when it turned out to be too
// large.
TEST_F(LargeObjectsTest, AfterFewerItemsAnotherPageIsTheNext) {
  std::vector<std::size_t> sizes(400, 1);
  std::fill_n(sizes.begin() + 150, 60, 900);
  request_.page_items = 40;
  Collection collection(sizes);
  const auto version = List(collection);
  ASSERT_TRUE(version) << version.error().message;
  ExpectAll(400);
  EXPECT_LE(collection.most_taken, 4000 + 64U);
}

TEST_F(LargeObjectsTest, APageThatExpiredInTheMiddleIsARefusal) {
  Collection collection(std::vector<std::size_t>(68, 1000));
  collection.expires_at = 12;
  EXPECT_FALSE(List(collection));
  EXPECT_EQ(refusal_.status, 410);
  EXPECT_EQ(objects_.size(), 12U);
}

}  // namespace
}  // namespace berth::kube::paged_list_test
