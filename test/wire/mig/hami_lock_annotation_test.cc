// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_binding.h"

#include <chrono>

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::dialects::hami_lock_annotation_test {
namespace {

using namespace std::chrono_literals;

const WallTime kTen = std::chrono::sys_days(std::chrono::year(2026) / 8 / 21) + 10h;

TEST(HamiLock, IsWrittenAsHamiWritesIt) {
  EXPECT_EQ(EncodeHamiLock(kTen + 7s + 900ms, {"u", "default", "train-0"}),
            "2026-08-21T10:00:07Z,default,train-0");
  EXPECT_EQ(EncodeLockPatch("42", "2026-08-21T10:00:07Z,default,train-0"),
            R"({"metadata":{"resourceVersion":"42","annotations":)"
            R"({"hami.io/mutex.lock":"2026-08-21T10:00:07Z,default,train-0"}}})");
  EXPECT_EQ(EncodeLockPatch("42", ""),
            R"({"metadata":{"resourceVersion":"42","annotations":{"hami.io/mutex.lock":null}}})");
}

TEST(HamiLock, IsReadWithTheClockOfWhoeverTookIt) {
  const auto since = [](const std::string& text) {
    const auto lock = ParseHamiLock(text);
    EXPECT_TRUE(lock) << lock.error().message;
    return lock ? lock->since : WallTime();
  };
  EXPECT_EQ(since("2026-08-21T10:00:00Z,default,train-0"), kTen);
  EXPECT_EQ(since("2026-08-21T18:00:00+08:00,default,train-0"), kTen);
  EXPECT_EQ(since("2026-08-21T06:30:00.25-03:30,default,train-0"), kTen);
  const auto lock = ParseHamiLock("2026-08-21T10:00:00Z,default,train-0");
  EXPECT_EQ(lock->namespace_name, "default");
  EXPECT_EQ(lock->pod, "train-0");
  // Of old releases.
  EXPECT_EQ(since("2026-08-21T10:00:00Z"), kTen);
  EXPECT_EQ(ParseHamiLock("2026-08-21T10:00:00Z")->pod, "");
}

TEST(HamiLock, SaysWhatItWantsOfATextThatIsNone) {
  for (const char* text : {"", "now", "2026-08-21", "2026-13-21T10:00:00Z", "2026-02-30T10:00:00Z",
                           "2026-08-21T10:00:00", "2026-08-21T10:00:00+8", "2026-08-21 10:00:00Z",
                           "2026-08-21T10:00:00Z,default", "2026-08-21T10:00:00Z,a,b,c",
                           "2026-08-21T1a:00:00Z,a,b", "-026-08-21T10:00:00Z,a,b"}) {
    const auto lock = ParseHamiLock(text);
    EXPECT_FALSE(lock) << text;
    if (!lock) {
      EXPECT_EQ(lock.error().message,
                "want TIME,NAMESPACE,POD with the time as 2026-08-21T10:00:00Z, got \"" +
                    std::string(text) + "\"");
    }
  }
}

TEST(HamiLock, IsFoundInTheNode) {
  const auto node = [](const test::Json& json) {
    return DecodeLockedNode(test::Padded(json.dump()));
  };
  test::Json json = {{"kind", "Node"}, {"metadata", {{"name", "n1"}, {"resourceVersion", "42"}}}};
  EXPECT_EQ(node(json)->lock, "");
  EXPECT_EQ(node(json)->resource_version, "42");
  json["metadata"]["annotations"] = {{"other", "x"}, {"hami.io/mutex.lock", "y"}};
  EXPECT_EQ(node(json)->lock, "y");
  json["metadata"].erase("resourceVersion");
  EXPECT_FALSE(node(json));
  EXPECT_FALSE(DecodeLockedNode(test::Padded("[")));
}

}  // namespace
}  // namespace berth::dialects::hami_lock_annotation_test
