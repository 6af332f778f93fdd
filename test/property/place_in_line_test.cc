// SPDX-License-Identifier: Apache-2.0
//
// One order of those who wait: each list of pods that wait is sorted as its own rule says, which is
// written here anew for each: of refused pods, of those that plans of moves and evictions of Berth
// are for, of the page, of those that kept room is offered to.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/earmarks/earmark_line.h"

namespace berth::test::place_in_line_test {
namespace {

struct One {
  WaitingPod waiting;
  std::uint64_t nth;
  std::optional<Instant> turn;
  [[nodiscard]] int priority() const { return waiting.pod->priority; }
  [[nodiscard]] const std::string& uid() const { return waiting.pod->id.uid; }
};

// Few values of each, so that most pairs are alike in something.
std::vector<One> SomePods(Random& random) {
  std::vector<One> pods;
  for (std::uint64_t i = 0; i < 30; ++i) {
    auto pod = std::make_shared<PodRequest>();
    pod->id = {"ns", "p", std::to_string(random.Below(1000)) + "-" + std::to_string(i)};
    pod->priority = (static_cast<int>(random.Below(3)) - 1) * 2'000'000'000;
    One one{.waiting = {.pod = std::move(pod)}, .nth = i, .turn = {}};
    if (random.Below(4) != 0) {
      one.waiting.created = WallTime(std::chrono::seconds(random.Below(3)));
    }
    if (random.Below(3) != 0) one.turn = Instant(std::chrono::seconds(1 + random.Below(3)));
    pods.push_back(std::move(one));
  }
  random.Shuffle(pods);
  return pods;
}

using Before = bool (*)(const One& a, const One& b);
using Place = PlaceInLine (*)(const One& one);

bool ByPriorityAndRefusal(const One& a, const One& b) {
  if (a.priority() != b.priority()) return a.priority() > b.priority();
  return a.nth < b.nth;
}

bool ByPriorityAndAge(const One& a, const One& b) {
  if (a.priority() != b.priority()) return a.priority() > b.priority();
  if (!a.waiting.created || !b.waiting.created) {
    return a.waiting.created.has_value() && !b.waiting.created.has_value();
  }
  return *a.waiting.created < *b.waiting.created;
}

bool ByTurn(const One& a, const One& b) {
  if (a.turn != b.turn) return a.turn < b.turn;  // nothing comes first
  return ByPriorityAndAge(a, b);
}

bool ByPriorityAgeAndUid(const One& a, const One& b) {
  if (ByPriorityAndAge(a, b) || ByPriorityAndAge(b, a)) return ByPriorityAndAge(a, b);
  return a.uid() < b.uid();
}

TEST(PlaceInLine, IsInEachLineWhatItsOwnRuleSays) {
  const std::vector<std::pair<Before, Place>> lines = {
      {ByPriorityAndRefusal,
       [](const One& one) { return PlaceInLine{.priority = one.priority(), .nth = one.nth}; }},
      {ByPriorityAndAge, [](const One& one) { return one.waiting.place(); }},
      {ByTurn,
       [](const One& one) {
         PlaceInLine place = one.waiting.place();
         if (one.turn) place.turn = *one.turn;
         return place;
       }},
      {ByPriorityAgeAndUid, [](const One& one) {
         return InLine{{one.waiting.pod}, one.waiting.created.value_or(WallTime::max())}.place();
       }}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const std::vector<One> pods = SomePods(random);
    for (std::size_t line = 0; line < lines.size(); ++line) {
      const auto [before, place] = lines[line];
      for (const One& a : pods) {
        for (const One& b : pods) {
          ASSERT_EQ(ComesBefore(place(a), place(b)), before(a, b))
              << "seed " << seed << ", line " << line << ", pods " << a.uid() << ", " << b.uid();
        }
      }
    }
  }
}

TEST(WaitingPod, IsInNeedWhereNobodyElseMakesRoomForIt) {
  const WallTime now{std::chrono::hours(1)};
  const auto waits = [&](const WaitingPod& pod) {
    return pod.IsInNeed({"default-scheduler"}, now, std::chrono::minutes(5));
  };
  auto request = std::make_shared<PodRequest>();
  request->scheduler = "default-scheduler";
  WaitingPod pod{.pod = request, .unschedulable = true, .created = now - std::chrono::minutes(5)};
  EXPECT_TRUE(waits(pod));
  pod.held_back = "scheduling gates hold it back";
  EXPECT_FALSE(waits(pod)) << "gates";
  pod.held_back.clear();
  pod.nominated = "n0";
  EXPECT_FALSE(waits(pod)) << "kube-scheduler makes room there";
  pod.nominated.clear();
  pod.unschedulable = false;
  EXPECT_FALSE(waits(pod)) << "kube-scheduler has not said that no node will do";
  pod.unschedulable = true;
  pod.created = now - std::chrono::minutes(4);
  EXPECT_FALSE(waits(pod)) << "too young";
  pod.created.reset();
  EXPECT_FALSE(waits(pod)) << "of an unknown age";
  pod.created = now - std::chrono::hours(1);
  request->scheduler = "other";
  EXPECT_FALSE(waits(pod)) << "a scheduler that asks somebody else";
}

}  // namespace
}  // namespace berth::test::place_in_line_test
