// SPDX-License-Identifier: Apache-2.0
#include "cluster/waiting_pods.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth {
namespace {

using test::APod;

WaitingPod Waiting(const APod& pod, const std::string& name, bool waits = true) {
  return {"ns", name, pod.Request(), waits};
}

std::vector<std::string> NamesOf(const WaitingPods& waiting) {
  std::vector<std::string> names;
  for (const auto& pod : waiting.Current()) names.push_back(pod->id.name);
  return names;
}
using Names = std::vector<std::string>;

TEST(WaitingPods, AreThoseWithMigDevicesThatWait) {
  WaitingPods waiting;
  waiting.Put(Waiting(APod("b").Mig("1g.5gb"), "b"));
  waiting.Put(Waiting(APod("a").Mig("2g.10gb"), "a"));
  waiting.Put(Waiting(APod("whole").Whole(1), "whole"));
  waiting.Put(Waiting(APod("new").Mig("1g.5gb"), "new", false));
  EXPECT_EQ(NamesOf(waiting), (Names{"a", "b"}));
}

TEST(WaitingPods, LeaveWithTheirNodeAndWithTheirObject) {
  WaitingPods waiting;
  waiting.Put(Waiting(APod("a").Mig("1g.5gb"), "a"));
  waiting.Put(Waiting(APod("b").Mig("1g.5gb"), "b"));
  waiting.Put(Waiting(APod("a").Mig("1g.5gb"), "a", false));
  EXPECT_EQ(NamesOf(waiting), (Names{"b"}));
  waiting.Remove("other", "b");
  EXPECT_EQ(NamesOf(waiting), (Names{"b"}));
  waiting.Remove("ns", "b");
  EXPECT_EQ(NamesOf(waiting), (Names{}));
}

TEST(WaitingPods, AreAllThatAListSays) {
  WaitingPods waiting;
  waiting.Put(Waiting(APod("a").Mig("1g.5gb"), "a"));
  waiting.Reset({Waiting(APod("c").Mig("1g.5gb"), "c"), Waiting(APod("d").Whole(1), "d")});
  EXPECT_EQ(NamesOf(waiting), (Names{"c"}));
}

TEST(WaitingPods, ArriveOnceEachWhateverTheyAskForAndHoweverOftenTheyAreShown) {
  Names arrived;
  WaitingPods waiting([&](const WaitingPods::Pods& pods) {
    for (const auto& pod : pods) arrived.push_back(pod->id.uid);
  });
  waiting.Reset({Waiting(APod("a").Mig("1g.5gb"), "a", false), Waiting(APod("b").Whole(1), "b")});
  EXPECT_EQ(arrived, (Names{"uid-a", "uid-b"}));
  waiting.Put(Waiting(APod("a").Mig("1g.5gb"), "a"));
  waiting.Put(Waiting(APod("c").Cpu(1), "c", false));
  waiting.Reset({Waiting(APod("a").Mig("1g.5gb"), "a"), Waiting(APod("c").Cpu(1), "c", false)});
  EXPECT_EQ(arrived, (Names{"uid-a", "uid-b", "uid-c"})) << "a list shows them again";
  waiting.Put(Waiting(APod("next"), "c"));
  EXPECT_EQ(arrived.back(), "uid-next") << "another pod of the same name";
}

}  // namespace
}  // namespace berth
