// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/pod_writes.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "test/support/eventually.h"
#include "test/support/fake_api_server.h"

namespace berth::test::event_recorder_test {
namespace {

using kube::EventRecorder;
using std::chrono::seconds;

constexpr const char* kEvents = "/api/v1/events";

class EventRecorderTest : public testing::Test {
 protected:
  Decision Bound(const std::string& pod) {
    id_ = {"uid-" + pod, "team", pod};
    placement_ = {"n1", 1000, 0, {{0, 1000, 0}, {3, 250, 0}}};
    return {.verb = Verb::kBind, .pod = &id_, .placement = &placement_};
  }
  std::vector<std::string> problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }

  FakeApiServer api_;
  SystemClock clock_;
  PodId id_;
  Placement placement_;
  std::mutex mutex_;
  std::vector<std::string> problems_;
  const EventRecorder::OnProblem on_problem_ = [this](const std::string& problem) {
    const std::lock_guard lock(mutex_);
    problems_.push_back(problem);
  };
};

TEST_F(EventRecorderTest, TellsWhichGpusAPodGot) {
  EventRecorder recorder(api_, clock_, "berth-0", on_problem_);
  recorder.Record(Bound("train"));
  ASSERT_TRUE(Eventually([&] { return api_.All(kEvents).size() == 1; }, seconds(5)));
  const auto event = api_.All(kEvents).front();
  EXPECT_EQ(event["reason"], "GpusAssigned");
  EXPECT_EQ(event["message"], "GPU 0, 3 (250 milli) on node n1");
  EXPECT_TRUE(problems().empty());
}

TEST_F(EventRecorderTest, TellsOnceWhyTheApiServerTakesNone) {
  api_.fault = [](const kube::ApiRequest& request) {
    return request.path == "/api/v1/namespaces/team/events" ? Fault::kForbidden : Fault::kNone;
  };
  EventRecorder recorder(api_, clock_, "berth-0", on_problem_);
  for (const char* pod : {"a", "b", "c"}) recorder.Record(Bound(pod));
  ASSERT_TRUE(Eventually([&] { return recorder.dropped() == 3; }, seconds(5)));
  ASSERT_EQ(problems().size(), 1U);
  EXPECT_TRUE(problems().front().starts_with("the API server answered 403")) << problems().front();
}

}  // namespace
}  // namespace berth::test::event_recorder_test
