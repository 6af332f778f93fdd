// SPDX-License-Identifier: Apache-2.0
#include "server/kube/paged_list.h"

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/scripted_api_client.h"

namespace berth::kube {
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

TEST_F(PagedListTest, ARefusalComesWithItsStatusAndItsReason) {
  const auto version = List(
      {{.status = 403,
        .pieces = {R"({"kind":"Status","code":403,"reason":"Forbidden","message":"not you"})"}}});
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().message, "403 Forbidden: not you");
  EXPECT_EQ(refusal_.status, 403);
}

TEST_F(PagedListTest, APageThatIsTooLongIsAnErrorAndNotAShorterList) {
  request_.max_page_bytes = 60;
  const auto version = List({{.pieces = {R"({"metadata":{"resourceVersion":"1"},"items":[{"x":1},)",
                                         R"({"x":2},{"x":3}]})"}}});
  ASSERT_FALSE(version);
  EXPECT_EQ(version.error().message, "a page of more than 60 bytes");
  EXPECT_TRUE(objects_.empty());
}

}  // namespace
}  // namespace berth::kube
