// SPDX-License-Identifier: Apache-2.0
//
// A configuration that changes while a verb is under way is the next verb's.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "test/support/bind_now.h"
#include "test/support/wire_fixture.h"

namespace berth::test::verb_moment_test {
namespace {

// Changes the configuration while the pod of a request is read.
class Meddler final : public wire::Dialect {
 public:
  explicit Meddler(const std::function<void()>& meddle) : meddle_(meddle) {}
  [[nodiscard]] std::string_view name() const override { return "meddler"; }
  void ReadGroup(const wire::PodParts&, const TopologyLevels&, wire::GroupAsk&) const override {
    if (meddle_) meddle_();
  }

 private:
  const std::function<void()>& meddle_;
};

// The same while a bind looks at the time.
class MeddlingClock final : public Clock {
 public:
  explicit MeddlingClock(const std::function<void()>& meddle) : meddle_(meddle) {}
  [[nodiscard]] Instant Now() const override {
    if (meddle_) meddle_();
    return Instant();
  }
  [[nodiscard]] WallTime Wall() const override { return WallTime(); }

 private:
  const std::function<void()>& meddle_;
};

// Keeps until when it may try.
class PatientBinder final : public PodBinder {
 public:
  Status Bind(const BindOrder& order) override {
    deadline = order.deadline;
    return {};
  }
  Result<PodTruth> Find(const PodId&) override { return Fail(Errc::kNotFound, "pod is gone"); }
  Instant deadline{};
};

std::shared_ptr<const wire::Dialects> Only(std::unique_ptr<const wire::Dialect> dialect) {
  std::vector<std::unique_ptr<const wire::Dialect>> all;
  all.push_back(std::move(dialect));
  return std::make_shared<const wire::Dialects>(std::move(all));
}

class VerbMomentTest : public testing::Test {
 protected:
  VerbMomentTest() {
    std::vector<ClusterEvent> events;
    for (const auto& [name, gpus] : {std::pair("cpu", 0), std::pair("gpu", 8)}) {
      events.emplace_back(NodeUpserted{MachineWith(name, gpus)});
    }
    EXPECT_TRUE(state_.Apply(events));
  }

  static Extender::Policy With(NodeGuard guard) {
    return {.engine = EngineOf("best-fit"),
            .reservation_time = std::chrono::seconds(30),
            .guard = guard};
  }
  // What the verb answers, by HTTP, where `then` is the policy from its middle on.
  Json AskWhileItBecomes(Extender::Policy then,
                         http::HttpResponse (Verbs::*verb)(http::HttpRequest&),
                         const std::string& body) {
    meddle_ = [this, then = std::move(then)] { extender_.Use(then); };
    http::HttpRequest request{"POST", "/", "", Padded(body)};
    const http::HttpResponse response = (verbs_.*verb)(request);
    meddle_ = nullptr;
    return Json::parse(response.body);
  }

  std::function<void()> meddle_;
  const MeddlingClock clock_{meddle_};
  ClusterState state_;
  PatientBinder binder_;
  SilentSink sink_;
  const wire::PodRules rules_{Only(std::make_unique<Meddler>(meddle_)), DefaultConfig()};
  Metrics metrics_;
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .behind_scheduler = true},
                     With(NodeGuard::kOff)};
  Verbs verbs_{extender_, rules_, metrics_};
};

TEST_F(VerbMomentTest, AFilterEndsWithTheGuardThatItBeganWith) {
  const std::string body =
      ArgsWithNames(PodAsking("a", {{"cpu", "1"}}), Json::array({"cpu", "gpu", "unknown"}));
  EXPECT_EQ(AskWhileItBecomes(With(NodeGuard::kRefuse), &Verbs::Filter, body)["NodeNames"],
            (Json{"cpu", "gpu", "unknown"}));
  EXPECT_EQ(AskWhileItBecomes(With(NodeGuard::kOff), &Verbs::Filter, body)["NodeNames"],
            (Json{"cpu", "unknown"}));
  EXPECT_EQ(AskWhileItBecomes(With(NodeGuard::kOff), &Verbs::Filter, body)["NodeNames"],
            (Json{"cpu", "gpu", "unknown"}));
}

TEST_F(VerbMomentTest, AFilterEndsWithTheNumberOfNodesThatItBeganWith) {
  ASSERT_TRUE(state_.Apply(std::vector<ClusterEvent>{NodeUpserted{MachineWith("gpu-2", 8)}}));
  Extender::Policy one = With(NodeGuard::kOff);
  one.nodes_to_score = 1;
  const Json names = {"gpu", "gpu-2"};
  const auto ask = [&](const char* uid) { return ArgsWithNames(PodWithGpus(uid, 1), names); };
  EXPECT_EQ(AskWhileItBecomes(one, &Verbs::Filter, ask("a"))["NodeNames"], names);
  EXPECT_EQ(AskWhileItBecomes(With(NodeGuard::kOff), &Verbs::Filter, ask("b"))["NodeNames"],
            Json{"gpu"});
}

TEST_F(VerbMomentTest, APrioritizeEndsWithTheGuardThatItBeganWith) {
  const std::string body =
      ArgsWithNames(PodAsking("a", {{"cpu", "1"}}), Json::array({"cpu", "gpu"}));
  extender_.Use(With(NodeGuard::kScore));
  const Json scores = AskWhileItBecomes(With(NodeGuard::kOff), &Verbs::Prioritize, body);
  EXPECT_EQ(scores[0]["Score"], 10);
  EXPECT_EQ(scores[1]["Score"], 0) << "a GPU node is the last resort";
}

TEST_F(VerbMomentTest, ABindEndsWithTheTimeThatItBeganWith) {
  AskWhileItBecomes(With(NodeGuard::kOff), &Verbs::Filter,
                    ArgsWithNames(PodWithGpus("a", 1), Json::array({"gpu"})));
  Extender::Policy patient = With(NodeGuard::kOff);
  patient.reservation_time = std::chrono::hours(1);
  meddle_ = [this, patient] { extender_.Use(patient); };
  BindRequest request{"ns", "pod-a", "a", "gpu"};
  request.asked = Instant();  // so that it looks at the time at once
  EXPECT_TRUE(BindNow(extender_, request));
  EXPECT_EQ(binder_.deadline, Instant() + std::chrono::seconds(24));
}

}  // namespace
}  // namespace berth::test::verb_moment_test
