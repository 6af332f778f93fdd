// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/api_json.h"

#include <gtest/gtest.h>

#include <string>

#include "server/wire/json/json_text.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::job_json_test {
namespace {

using test::Json;

const char* const kStart = "2026-11-27T10:00:00Z";

Json Job(const Json& deadline) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"name", "train"}, {"namespace", "ml"}, {"uid", "u"}}},
          {"spec",
           {{"parallelism", 4},
            {"template", {{"spec", {{"activeDeadlineSeconds", 7}}}}},
            {"activeDeadlineSeconds", deadline}}},
          {"status", {{"startTime", kStart}, {"active", 4}}}};
}

Result<JobDeadline> Decode(const Json& job) { return DecodeJobDeadline(test::Padded(job.dump())); }

TEST(JobJson, SaysUntilWhenTheJobRuns) {
  const auto job = Decode(Job(3600));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(*job, (JobDeadline{.namespace_name = "ml",
                               .uid = "u",
                               .started = ParseTime(kStart),
                               .seconds = 3600,
                               .over = false}));
  Json bare = Job(nullptr);
  bare.erase("status");
  EXPECT_EQ(*Decode(bare), (JobDeadline{.namespace_name = "ml", .uid = "u"}))
      << "the deadline of its pods is not its own";
}

TEST(JobJson, WhatIsNoDeadlineIsNone) {
  const Json none[] = {0, -1, kMostRunSeconds + 1, 1e30, 1.5, "60", true, Json::array({60})};
  for (const Json& deadline : none) {
    const auto job = Decode(Job(deadline));
    ASSERT_TRUE(job) << deadline;
    EXPECT_EQ(job->seconds, 0) << deadline;
  }
  EXPECT_EQ(Decode(Job(kMostRunSeconds))->seconds, kMostRunSeconds);
  for (const char* const time : {"", "yesterday", "9999-12-31T23:59:59Z", "2026-13-01T00:00:00Z"}) {
    Json job = Job(60);
    job["status"]["startTime"] = time;
    EXPECT_EQ(Decode(job)->started, std::nullopt) << time;
  }
}

TEST(JobJson, OneThatHasEndedOrIsSuspendedBeforeItsStartIsOver) {
  const auto with = [](const std::string& type, const std::string& status) {
    Json job = Job(60);
    job["status"]["conditions"] = {{{"type", "Suspended"}, {"status", "False"}},
                                   {{"type", type}, {"status", status}},
                                   {{"type", "Other"}, {"status", "True"}}};
    return Decode(job)->over;
  };
  EXPECT_TRUE(with("Complete", "True"));
  EXPECT_TRUE(with("Failed", "True"));
  EXPECT_FALSE(with("Failed", "False"));
  EXPECT_FALSE(with("FailureTarget", "True")) << "its pods are there yet";
  Json suspended = Job(60);
  suspended["spec"]["suspend"] = true;
  EXPECT_FALSE(Decode(suspended)->over) << "it may be resumed before anybody has looked";
  suspended["status"].erase("startTime");
  EXPECT_TRUE(Decode(suspended)->over);
}

TEST(JobJson, WhatIsNoJobIsAnError) {
  Json other = Job(60);
  other["kind"] = "CronJob";
  EXPECT_EQ(Decode(other).error().message, "kind: want Job, got \"CronJob\"");
  Json nameless = Job(60);
  nameless["metadata"].erase("name");
  EXPECT_EQ(Decode(nameless).error().message, "metadata.name: want a name, got \"\"");
  Json anonymous = Job(60);
  anonymous["metadata"].erase("uid");
  EXPECT_EQ(Decode(anonymous).error().message, "metadata.uid: want 1 to 64 bytes, got \"\"");
  Json lengthy = Job(60);
  lengthy["metadata"]["uid"] = std::string(65, 'u');
  EXPECT_FALSE(Decode(lengthy));
  lengthy["metadata"] = {{"name", "n"}, {"namespace", std::string(254, 'n')}, {"uid", "u"}};
  EXPECT_FALSE(Decode(lengthy));
  for (const char* const field : {"spec", "status", "metadata"}) {
    Json wrong = Job(60);
    wrong[field] = "text";
    EXPECT_FALSE(Decode(wrong)) << field;
  }
  Json conditions = Job(60);
  conditions["status"]["conditions"] = {1, 2};
  EXPECT_FALSE(Decode(conditions));
  for (const char* const text : {"", "{", "[]", "{\"spec\":{\"activeDeadlineSeconds\":6"}) {
    EXPECT_FALSE(DecodeJobDeadline(test::Padded(text))) << text;
  }
}

}  // namespace
}  // namespace berth::wire::job_json_test
