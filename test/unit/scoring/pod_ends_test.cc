// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/pod_ends.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::pod_ends_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const WallTime kNow = WallTime(std::chrono::hours(24));

PodLife Since(seconds ago) { return {.started = kNow - ago}; }

PodRecord Record(const APod& pod, PodLife life) {
  PodRecord record;
  record.pod = pod.Request();
  record.life = life;
  return record;
}

PodEnds EndsOf(const std::vector<ANode>& nodes) { return {*SnapshotOf(nodes), kNow}; }

TEST(PodEnds, ADeadlineCountsFromTheStartOfThePodAndWithItsGracePeriod) {
  const PodEnds ends = EndsOf({});
  const auto end = [&](const APod& pod, minutes ago) { return ends.Of(Record(pod, Since(ago))); };
  EXPECT_EQ(end(APod("p"), minutes(1)), std::nullopt);
  EXPECT_EQ(end(APod("p").EndsWithin(minutes(60)), minutes(20)), kNow + minutes(40) + seconds(30));
  EXPECT_EQ(end(APod("p").EndsWithin(minutes(60)), minutes(90)), kNow) << "it is about to end";
  EXPECT_EQ(ends.Of(Record(APod("p").EndsWithin(minutes(60)), {})),
            kNow + minutes(60) + seconds(30))
      << "its kubelet has not seen it";
  EXPECT_EQ(ends.OfNew(APod("p").EndsWithin(minutes(60)).Request()),
            kNow + PodEnds::kStart + minutes(60) + seconds(30));
  EXPECT_EQ(ends.OfNew(APod("p").Request()), std::nullopt);
}

TEST(PodEnds, AWordCountsUntilItIsBroken) {
  const PodEnds ends = EndsOf({});
  const auto end = [&](minutes ago) {
    return ends.Of(Record(APod("p").Expects(minutes(60)), Since(ago)));
  };
  EXPECT_EQ(end(minutes(20)), kNow + minutes(40));
  EXPECT_EQ(end(minutes(65)), kNow) << "a little late";
  EXPECT_EQ(end(minutes(67)), std::nullopt);
  EXPECT_EQ(ends.Of(Record(APod("p").Expects(minutes(60)).EndsWithin(minutes(30)), Since({}))),
            kNow + minutes(30) + seconds(30))
      << "the deadline comes first";
  EXPECT_EQ(ends.OfNew(APod("p").Expects(minutes(5)).Request()),
            kNow + PodEnds::kStart + minutes(5));
}

// Nine pods of ten keep their word: it counts. Eight do: it does not, for any pod of the namespace.
TEST(PodEnds, TheWordOfANamespaceCountsWhileNineOfTenKeepIt) {
  const auto believed = [](int broken, const std::string& space) {
    ANode node("n");
    node.Gpus(16);
    for (int i = 0; i < 10; ++i) {
      node.Holding(APod("p" + std::to_string(i)).Namespace("team").Whole(1).Expects(minutes(10)),
                   {i}, Since(minutes(i < broken ? 30 : 5)));
    }
    return EndsOf({node})
        .OfNew(APod("x").Namespace(space).Expects(minutes(1)).Request())
        .has_value();
  };
  EXPECT_TRUE(believed(0, "team"));
  EXPECT_TRUE(believed(1, "team"));
  EXPECT_FALSE(believed(2, "team"));
  EXPECT_TRUE(believed(2, "other"));
}

TEST(PodEnds, KnowsWhetherAnybodySaysAnything) {
  EXPECT_FALSE(EndsOf({ANode("a").Gpus(8).Holding(APod("x").Whole(1), {0})}).knows());
  EXPECT_TRUE(
      EndsOf({ANode("a").Gpus(8).Holding(APod("x").Whole(1).Expects(minutes(1)), {0})}).knows());
}

TEST(PodEnds, WhoSaysNothingEndsAsPodsLikeItDid) {
  RunTimeTable table;
  for (int i = 0; i < 12; ++i) {
    table.Add(APod("old" + std::to_string(i)).Whole(2).Series(7).Request(), minutes(60 + i), kNow);
  }
  const PodEnds ends(Snapshot(), kNow, table.Newest());
  const PodRecord silent = Record(APod("p").Whole(2).Series(7), Since(minutes(20)));
  EXPECT_EQ(ends.Of(silent), kNow + minutes(70 - 20));
  EXPECT_TRUE(ends.IsLearned(silent));
  EXPECT_EQ(ends.OfNew(silent.pod), kNow + PodEnds::kStart + minutes(70));
  EXPECT_EQ(ends.Of(Record(APod("p").Whole(2), Since({}))), std::nullopt) << "a service";
  const PodRecord said = Record(APod("p").Whole(2).Series(7).Expects(minutes(30)), Since({}));
  EXPECT_EQ(ends.Of(said), kNow + minutes(30));
  EXPECT_FALSE(ends.IsLearned(said));
  const APod promises = APod("p").Whole(2).Series(7).EndsWithin(minutes(90));
  EXPECT_EQ(ends.Of(Record(promises, Since({}))), kNow + minutes(90) + seconds(30));
  const APod broken = APod("p").Whole(2).Series(7).Expects(minutes(30));
  EXPECT_EQ(ends.Of(Record(broken, Since(minutes(50)))), kNow + minutes(20))
      << "its word is broken";
  const ANode node = ANode("a").Gpus(8).Holding(APod("x").Whole(2).Series(7), {0, 1});
  EXPECT_FALSE(EndsOf({node}).knows());
  EXPECT_TRUE(PodEnds(*SnapshotOf({node}), kNow, table.Newest()).knows());
}

class PodEndsByJobTest : public testing::Test {
 protected:
  // Of the Job with that UID in the namespace of pods that say none.
  void Job(const std::string& uid, minutes deadline, std::optional<WallTime> started) {
    jobs_.Put({.namespace_name = APod("p").Request().id.namespace_name,
               .uid = uid,
               .started = started,
               .seconds = seconds(deadline).count()});
  }
  [[nodiscard]] PodEnds Ends(const std::vector<ANode>& nodes = {}) const {
    return {*SnapshotOf(nodes), kNow, nullptr, &jobs_};
  }

  JobEndTable jobs_;
  const seconds grace_{30};
};

TEST_F(PodEndsByJobTest, APodEndsByTheDeadlineOfItsJob) {
  Job("j", minutes(60), kNow - minutes(40));
  const auto end = [&](const APod& pod) { return Ends().Of(Record(pod, Since(minutes(5)))); };
  EXPECT_EQ(end(APod("p").Controller("j")), kNow + minutes(20) + grace_);
  EXPECT_EQ(end(APod("p").Controller("other")), std::nullopt);
  EXPECT_EQ(end(APod("p").Controller("j").Expects(minutes(10))), kNow + minutes(5))
      << "the sooner of both is its word";
  EXPECT_EQ(end(APod("p").Controller("j").Expects(minutes(60))), kNow + minutes(20) + grace_);
  EXPECT_EQ(end(APod("p").Controller("j").EndsWithin(minutes(8))), kNow + minutes(3) + grace_);
  EXPECT_FALSE(Ends().IsLearned(Record(APod("p").Controller("j"), Since({}))));
  EXPECT_TRUE(Ends({ANode("a").Gpus(8).Holding(APod("x").Whole(1).Controller("j"), {0})}).knows());
}

TEST_F(PodEndsByJobTest, ANewPodHasWhatIsLeftOfTheDeadlineOfItsJob) {
  const PodEnds ends = Ends();
  const PodRequest pod = APod("p").Controller("j").Request();
  EXPECT_EQ(ends.OfNew(pod), std::nullopt);
  Job("j", minutes(60), std::nullopt);
  EXPECT_EQ(ends.OfNew(pod), kNow + PodEnds::kStart + minutes(60) + grace_)
      << "the Job came later, and has not started";
  Job("j", minutes(60), kNow - minutes(40));
  EXPECT_EQ(ends.OfNew(pod), kNow + minutes(20) + grace_);
  EXPECT_EQ(ends.OfNew(APod("p").Controller("j").Expects(minutes(5)).Request()),
            kNow + PodEnds::kStart + minutes(5));
  EXPECT_EQ(ends.OfNew(APod("p").Controller("j").EndsWithin(minutes(5)).Request()),
            kNow + PodEnds::kStart + minutes(5) + grace_);
  Job("j", minutes(30), kNow - minutes(40));
  EXPECT_EQ(ends.OfNew(pod), std::nullopt) << "it was said to be over, and makes pods yet";
  EXPECT_EQ(ends.OfNew(APod("p").Controller("j").Expects(minutes(5)).Request()), std::nullopt);
}

// The API server writes whole seconds: a pod that was placed since seems to have started before.
TEST_F(PodEndsByJobTest, AJobThatCameSinceCountsThoughItsPodStartedInTheSameSecond) {
  const PodEnds ends = Ends();
  Job("j", minutes(60), std::nullopt);
  const APod pod = APod("p").Controller("j");
  EXPECT_EQ(ends.Of(Record(pod, Since(seconds(1)))), kNow - seconds(1) + minutes(60) + grace_);
  EXPECT_EQ(ends.Of(Record(pod, Since(minutes(1)))), std::nullopt) << "it runs without its Job";
}

// A Job says ten minutes, gets past a reservation by that, and then says ten hours.
TEST_F(PodEndsByJobTest, AJobThatIsExtendedHasBrokenItsWord) {
  Job("j", minutes(10), kNow - minutes(30));
  Job("j", minutes(600), kNow - minutes(30));
  Job("k", minutes(60), kNow - minutes(30));
  const auto with = [](int of_j) {
    ANode node("n");
    node.Gpus(16);
    for (int i = 0; i < 10; ++i) {
      const APod pod = APod("p" + std::to_string(i)).Whole(1).Controller(i < of_j ? "j" : "k");
      node.Holding(pod, {i}, Since(minutes(30)));
    }
    return node;
  };
  const PodRecord honest = Record(APod("x").Controller("k"), Since(minutes(30)));
  EXPECT_EQ(Ends().Of(Record(APod("x").Controller("j"), Since(minutes(30)))), std::nullopt);
  EXPECT_EQ(Ends({with(1)}).Of(honest), kNow + minutes(30) + grace_);
  EXPECT_EQ(Ends({with(2)}).Of(honest), std::nullopt) << "two pods of ten";
  EXPECT_EQ(Ends({with(2)}).OfNew(APod("x").Expects(minutes(1)).Request()), std::nullopt);
  EXPECT_TRUE(Ends({with(2)}).OfNew(APod("x").EndsWithin(minutes(1)).Request()));
}

TEST_F(PodEndsByJobTest, TheControllerOfJobsHasAMomentToEndThePods) {
  Job("j", minutes(60), kNow - minutes(61));
  EXPECT_EQ(Ends().Of(Record(APod("p").Controller("j"), Since(minutes(60)))), kNow);
  EXPECT_EQ(Ends().Of(Record(APod("p").Controller("j"), Since(minutes(1)))), std::nullopt)
      << "a tenth of a short run, or ten seconds";
}

TEST(PodEnds, TellHowFarAPodIsPastItsWord) {
  const auto overrun = [](const APod& pod, minutes since) {
    return EndsOf({}).OverrunOf(Record(pod, Since(since)));
  };
  EXPECT_EQ(overrun(APod("p").Expects(minutes(120)), minutes(110)), std::nullopt);
  const auto late = overrun(APod("p").Expects(minutes(120)), minutes(127));
  ASSERT_TRUE(late);
  EXPECT_EQ(late->past, minutes(7));
  EXPECT_EQ(late->word, minutes(120));
  EXPECT_EQ(overrun(APod("p").Expects(minutes(120)), minutes(133)), std::nullopt) << "it is void";
  const auto killed = overrun(APod("p").EndsWithin(minutes(10)), minutes(15));
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->word, minutes(0)) << "the kubelet is to end it";
}

// Three pods: GPUs 0-1 end in 10 minutes, 2-3 in 20, 4 never. 5-7 are idle. CPU: 16; 4 are
// free now, 8 from the tenth minute on and 12 from the twentieth.
TEST(RoomAt, IsWhenEnoughGpusAndCpuAreFree) {
  const auto node =
      SnapshotOf({ANode("a")
                      .Gpus(8)
                      .Cpu(16)
                      .Holding(APod("x").Whole(2).Cpu(4).Expects(minutes(10)), {0, 1}, Since({}))
                      .Holding(APod("y").Whole(2).Cpu(4).Expects(minutes(20)), {2, 3}, Since({}))
                      .Holding(APod("z").Whole(1).Cpu(4), {4}, Since({}))})
          ->shared(0);
  const PodEnds ends = EndsOf({});
  const auto at = [&](int gpus, int cpu) {
    const auto room = RoomAt(*node, APod("p").Whole(gpus).Cpu(cpu).Request().shape, ends);
    return room ? std::optional(room->at) : std::nullopt;
  };
  const auto idle = [&](int gpus, int cpu) {
    return RoomAt(*node, APod("p").Whole(gpus).Cpu(cpu).Request().shape, ends)->idle;
  };
  EXPECT_EQ(at(3, 4), kNow);
  EXPECT_EQ(at(3, 5), kNow + minutes(10));
  EXPECT_EQ(at(4, 1), kNow + minutes(10));
  EXPECT_EQ(at(5, 9), kNow + minutes(20));
  EXPECT_EQ(at(7, 12), kNow + minutes(20));
  EXPECT_EQ(at(8, 1), std::nullopt) << "z says nothing";
  EXPECT_EQ(at(1, 13), std::nullopt);
  EXPECT_EQ(idle(3, 4), minutes(0));
  EXPECT_EQ(idle(4, 1), minutes(3 * 10)) << "three are idle for ten minutes";
  EXPECT_EQ(idle(7, 12), minutes(3 * 20 + 2 * 10));
  EXPECT_EQ(idle(1, 9), minutes(20)) << "for its CPU";
}

}  // namespace
}  // namespace berth::test::pod_ends_test
