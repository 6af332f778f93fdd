// SPDX-License-Identifier: Apache-2.0
#include "server/extender/waiting/pending_pods.h"

#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace berth::pending_pods_test {
namespace {

PodRequest Pod(const std::string& uid, int gpus = 1) {
  PodRequest pod;
  pod.id = {uid, "ns", uid};
  pod.shape.gpus = WholeGpus{gpus};
  return pod;
}

TEST(PendingPods, FindsWhatItRemembers) {
  PendingPods pods(4);
  pods.Remember(Pod("a", 3));
  ASSERT_NE(pods.Find("a"), nullptr);
  EXPECT_EQ(pods.Find("a")->shape.gpu_count(), 3);
  EXPECT_EQ(pods.Find("b"), nullptr);
  EXPECT_EQ(pods.size(), 1u);
}

TEST(PendingPods, SaysWhichPodsAreNew) {
  PendingPods pods(2);
  EXPECT_TRUE(pods.Remember(Pod("a")));
  EXPECT_FALSE(pods.Remember(Pod("a", 2)));
  EXPECT_TRUE(pods.Remember(Pod("b")));
  pods.Forget("b");
  EXPECT_TRUE(pods.Remember(Pod("b")));
}

TEST(PendingPods, TheNewestRequestOfAPodCounts) {
  PendingPods pods(4);
  pods.Remember(Pod("a", 1));
  const auto old = pods.Find("a");
  pods.Remember(Pod("a", 2));
  EXPECT_EQ(pods.Find("a")->shape.gpu_count(), 2);
  EXPECT_EQ(old->shape.gpu_count(), 1);  // what was handed out stays as it was
  EXPECT_EQ(pods.size(), 1u);
}

TEST(PendingPods, ForgetsOnRequestAndOnlyThen) {
  PendingPods pods(4);
  pods.Remember(Pod("a"));
  pods.Remember(Pod("b"));
  pods.Forget("a");
  pods.Forget("a");
  pods.Forget("never there");
  EXPECT_EQ(pods.Find("a"), nullptr);
  EXPECT_NE(pods.Find("b"), nullptr);
  EXPECT_EQ(pods.size(), 1u);
}

using std::chrono::minutes;
using std::chrono::seconds;
using Nodes = std::set<std::string>;

// kube-scheduler asks, and hears of that node.
Nodes Ask(PendingPods& pods, const std::string& node, Instant now) {
  pods.Remember(Pod("a"));
  Nodes out = pods.ComesBack("a", now);
  if (!out.contains(node)) pods.Told("a", node, now);
  return out;
}

TEST(PendingPods, ANodeToWhichAPodIsNotBoundIsOutAtTheThirdAskForSomeMinutes) {
  PendingPods pods(4);
  const Instant start{minutes(1)};
  EXPECT_EQ(Ask(pods, "n0", start), Nodes());
  EXPECT_EQ(Ask(pods, "n0", start + seconds(2)), Nodes()) << "once may happen";
  EXPECT_EQ(pods.NotBound("a", start + seconds(2)), "");
  EXPECT_EQ(Ask(pods, "n0", start + seconds(4)), Nodes{"n0"});
  EXPECT_EQ(pods.NotBound("a", start + seconds(4)),
            "kube-scheduler asked about a 3 times and did not bind it to n0");
  EXPECT_EQ(Ask(pods, "n1", start + minutes(4)), Nodes{"n0"});
  EXPECT_EQ(Ask(pods, "n0", start + minutes(6)), Nodes()) << "it may be well again";
  EXPECT_EQ(pods.NotBound("a", start + minutes(6)), "");
  EXPECT_EQ(Ask(pods, "n0", start + minutes(7)), Nodes{"n0"}) << "it is not";
  EXPECT_EQ(Ask(pods, "n1", start + minutes(13)), Nodes{"n0"}) << "for twice as long";
}

TEST(PendingPods, AsksAtTheSameMomentAndABindThatComesCountForNothing) {
  PendingPods pods(4);
  const Instant start{minutes(1)};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask(pods, "n0", start), Nodes());
  for (int i = 1; i < 20; ++i) {
    EXPECT_EQ(Ask(pods, "n0", start + seconds(i)), Nodes());
    pods.BindComes("a");
  }
  for (int i = 1; i < 20; ++i) {  // kube-scheduler chooses another node each time
    EXPECT_EQ(Ask(pods, i % 2 == 0 ? "n0" : "n1", start + minutes(i)), Nodes());
  }
}

TEST(PendingPods, TheNodesThatAreOutForAPodAreBounded) {
  PendingPods pods(4);
  Instant now{minutes(1)};
  for (int node = 0; node < 50; ++node) {
    for (int ask = 0; ask < 3; ++ask) Ask(pods, "n" + std::to_string(node), now += seconds(1));
  }
  EXPECT_EQ(pods.ComesBack("a", now).size(), 8U);
}

TEST(PendingPods, LargePodsAreBoundedInBytesAndTheNewestIsKept) {
  PendingPods pods(1000, 1'000'000);
  for (int i = 0; i < 100; ++i) {
    PodRequest pod = Pod(std::to_string(i));
    pod.labels = std::make_shared<const Labels>(Labels{{"app", std::string(100'000, 'x')}});
    pods.Remember(pod);
    EXPECT_LE(pods.bytes(), 1'000'000u);
  }
  EXPECT_GE(pods.size(), 5u);
  EXPECT_LT(pods.size(), 10u);
  EXPECT_NE(pods.Find("99"), nullptr);
  EXPECT_EQ(pods.Find("0"), nullptr);
  for (int i = 0; i < 100; ++i) pods.Forget(std::to_string(i));
  EXPECT_EQ(pods.bytes(), 0u);
}

TEST(PendingPods, WhenFullTheOneNotTouchedForLongestIsForgotten) {
  PendingPods pods(3);
  for (const char* uid : {"a", "b", "c"}) pods.Remember(Pod(uid));
  EXPECT_NE(pods.Find("a"), nullptr);  // finding it counts as touching
  pods.Remember(Pod("b"));             // so does remembering it anew
  pods.Remember(Pod("d"));
  EXPECT_EQ(pods.Find("c"), nullptr);
  for (const char* uid : {"a", "b", "d"}) EXPECT_NE(pods.Find(uid), nullptr) << uid;
}

TEST(PendingPods, NeverHoldsMoreThanItsCapacity) {
  PendingPods pods(10);
  for (int i = 0; i < 1000; ++i) {
    pods.Remember(Pod(std::to_string(i % 37)));
    if (i % 5 == 0) pods.Forget(std::to_string(i % 11));
    ASSERT_LE(pods.size(), 10u);
  }
  EXPECT_NE(pods.Find(std::to_string(999 % 37)), nullptr);
}

TEST(PendingPods, APodIsFoundByItsName) {
  PendingPods pods(10);
  pods.Remember(Pod("p", 3));
  ASSERT_NE(pods.FindNamed("ns", "p"), nullptr);
  EXPECT_EQ(pods.FindNamed("ns", "p")->shape.gpu_count(), 3);
  EXPECT_EQ(pods.FindNamed("ns", "q"), nullptr);
  EXPECT_EQ(pods.FindNamed("other", "p"), nullptr);
}

// As many and as large as `nvidia.com/use-gputype` and its like can make them.
TEST(PendingPods, RulesOfModelsAndOfGpusCountLikeEverythingElse) {
  PendingPods pods(65'536);
  for (int i = 0; i < 1500; ++i) {
    PodRequest pod = Pod(std::to_string(i));
    if (i % 3 == 0) pod.shape.model_rules = ModelRules({{true, std::string(200'000, 'x')}});
    if (i % 3 == 1) pod.shape.gpu_rules = {{true, std::string(200'000, 'x')}};
    if (i % 3 == 2) {
      pod.shape.neighbours.near = {{std::string(200'000, 'x'), LabelOperator::kExists, {}}};
    }
    pods.Remember(pod);
    ASSERT_LE(pods.bytes(), PendingPods::kMostBytes);
  }
  EXPECT_LT(pods.size(), 200u);
  EXPECT_NE(pods.Find("1499"), nullptr);
}

TEST(PendingPods, LongNamesOfSchedulersAreNotKept) {
  PendingPods pods(10);
  PodRequest pod = Pod("a");
  pod.scheduler = std::string(254, 's');
  pods.Remember(pod);
  pod.scheduler = std::string(253, 's');
  pods.Remember(pod);
  EXPECT_EQ(pods.Schedulers().size(), 1u);
}

}  // namespace
}  // namespace berth::pending_pods_test
