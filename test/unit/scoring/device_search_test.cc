// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/device_search.h"

#include <limits>

#include <gtest/gtest.h>

namespace berth::test::device_search_test {
namespace {

// So many devices in one pool, none taken; every request accepts all of them.
DeviceQuestion Ask(int devices, std::vector<SearchClaim> claims) {
  DeviceQuestion question;
  question.pools.emplace_back();
  for (int i = 0; i < devices; ++i) question.devices.emplace_back();
  question.claims = std::move(claims);
  question.match = [](const OptionOf&, int) { return DeviceMatch::kYes; };
  return question;
}

SearchRequest Count(std::int64_t count) { return {{{false, count}}}; }
SearchRequest All() { return {{{true, 1}}}; }

std::vector<int> DevicesOf(const PickedDevices& picked) {
  std::vector<int> devices;
  for (const PickedDevice& each : picked.devices) devices.push_back(each.device);
  return devices;
}
using Devices = std::vector<int>;

// Covers everything.
SearchConstraint Constraint(bool distinct, std::vector<int> values, std::size_t requests = 1) {
  return {distinct, std::move(values),
          std::vector<std::vector<bool>>(requests, std::vector<bool>(8, true))};
}

TEST(FirstFit, TakesFreeDevicesInTheOrderGiven) {
  DeviceQuestion question = Ask(5, {{{Count(2), Count(1)}}});
  question.devices[1].taken = true;
  const PickedDevices picked = FirstFit(question);
  EXPECT_EQ(picked.end, SearchEnd::kFound);
  EXPECT_EQ(DevicesOf(picked), (Devices{0, 2, 3}));
  EXPECT_EQ(picked.devices[2].of, (OptionOf{0, 1, 0}));
  question.claims = {{{Count(2)}}, {{Count(3)}}};
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone) << "four are free";
}

TEST(FirstFit, GoesBackWhereAnEarlierDeviceLeavesNoSolution) {
  DeviceQuestion question = Ask(3, {{{Count(1), Count(1)}}});
  question.match = [](const OptionOf& of, int device) {
    return of.request == 0 || device == 0 ? DeviceMatch::kYes : DeviceMatch::kNo;
  };
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{1, 0}));
}

TEST(FirstFit, AllMeansEveryDeviceThatSuits) {
  DeviceQuestion question = Ask(4, {{{All()}}});
  question.match = [](const OptionOf&, int device) {
    return device % 2 == 0 ? DeviceMatch::kYes : DeviceMatch::kNo;
  };
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 2}));
  question.devices[2].taken = true;
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone);
  question.devices[2].taken = false;
  question.pools[0].usable = false;
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kError) << "nobody knows how many there are";
  question.claims = {{{Count(1)}}};
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone);
  question = Ask(0, {{{All()}}});
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone) << "at least one";
}

// Devices with one capacity of ten each; every request takes so much.
DeviceQuestion AskParts(int devices, std::int64_t part, std::vector<SearchClaim> claims) {
  DeviceQuestion question = Ask(devices, std::move(claims));
  for (SearchDevice& device : question.devices) {
    device.divisible = true;
    device.left = {10};
  }
  question.part = [part](const OptionOf&, int) { return std::vector<std::int64_t>{part}; };
  return question;
}

TEST(FirstFit, ADivisibleDeviceGivesPartsWhileThereIsRoom) {
  DeviceQuestion question = AskParts(3, 4, {{{Count(1), Count(1)}}, {{Count(1)}}});
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 0, 1})) << "two requests of four, then two";
  question.devices[0].left = {3};
  question.devices[0].in_use = true;
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{1, 1, 2}));
  question.devices[2].taken = true;
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone) << "somebody has all of it";
  question = AskParts(2, 4, {{{Count(2)}}});
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 1})) << "one request: of each one part";
  question = AskParts(2, 4, {{{All(), Count(1)}}});
  question.devices[0].left = {3};
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone) << "all of them, and one is full";
  question.devices[0].left = {4};
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 1, 1}));
}

TEST(FirstFit, PartsThatAreTriedInVainAreGivenBack) {
  // The first request may have either, the second device 0 alone, and both do not fit there.
  DeviceQuestion question = AskParts(2, 6, {{{Count(1), Count(1)}}});
  question.match = [](const OptionOf& of, int device) {
    return of.request == 0 || device == 0 ? DeviceMatch::kYes : DeviceMatch::kNo;
  };
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{1, 0}));
}

TEST(FirstFit, ADivisibleDeviceUsesItsCountersOnce) {
  DeviceQuestion question = AskParts(2, 4, {{{Count(1), Count(1), Count(1)}}});
  for (SearchDevice& device : question.devices) device.uses = {{0, 5}};
  question.pools[0].counters_left = {5};
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone) << "there are counters for one device";
  question.pools[0].counters_left = {10};
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 0, 1}));
  question.devices[0].in_use = true;  // what it uses is gone from what is left
  question.pools[0].counters_left = {5};
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 0, 1}));
}

TEST(BestSet, RequestsThatAreAlikeMayHavePartsOfOneDevice) {
  const DeviceQuestion question = AskParts(3, 4, {{{Count(1), Count(1)}}});
  const auto last = [](std::span<const PickedDevice> set) {
    SetRating rating{};
    for (const PickedDevice& each : set) rating[0] -= each.device;
    return rating;
  };
  EXPECT_EQ(DevicesOf(BestSet(question, last)), (Devices{2, 2}));
}

TEST(FirstFit, OfSeveralWishesTheFirstThatCanBeHad) {
  SearchRequest request{{{false, 4}, {false, 2}, {false, 1}}, true};
  DeviceQuestion question = Ask(3, {{{request}}});
  const PickedDevices picked = FirstFit(question);
  EXPECT_EQ(DevicesOf(picked), (Devices{0, 1}));
  EXPECT_EQ(picked.devices[0].of.option, 1);
}

TEST(FirstFit, MatchingAttributesAreOfOneValueAndDistinctOnesOfNone) {
  DeviceQuestion question = Ask(4, {{{Count(2)}, {Constraint(false, {0, 1, 0, 1})}}});
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 2}));
  question.devices[2].taken = true;
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{1, 3}));
  question = Ask(4, {{{Count(3)}, {Constraint(true, {0, 0, 1, 2})}}});
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 2, 3}));
  question = Ask(3, {{{Count(2)}, {Constraint(false, {kNoValue, 0, kOddValue})}}});
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone);
  question.claims[0].requests = {All()};
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kError) << "no node can give it all of them";
}

TEST(FirstFit, AConstraintOfOneRequestLeavesTheOthersAlone) {
  SearchConstraint first = Constraint(false, {0, 1, 0, 1}, 2);
  first.covers[1] = {false};
  const DeviceQuestion question = Ask(4, {{{Count(2), Count(2)}, {first}}});
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{0, 2, 1, 3}));
}

TEST(FirstFit, DevicesShareCounters) {
  DeviceQuestion question = Ask(3, {{{Count(1), Count(1)}}});
  question.pools[0].counters_left = {10};
  question.devices[0].uses = {{0, 8}};
  question.devices[1].uses = {{0, 4}};
  question.devices[2].uses = {{0, 4}};
  EXPECT_EQ(DevicesOf(FirstFit(question)), (Devices{1, 2}));
  question.pools[0].counters_left = {10, -1};
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone) << "a pool with more used than there is";
}

TEST(FirstFit, WhatCannotBeEvaluatedEndsItOnlyWhereItIsReached) {
  DeviceQuestion question = Ask(3, {{{Count(2)}}});
  question.match = [](const OptionOf&, int device) {
    return device == 2 ? DeviceMatch::kError : DeviceMatch::kYes;
  };
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kFound);
  question.devices[0].taken = true;
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kError);
  question.match = [](const OptionOf&, int) { return DeviceMatch::kUnknown; };
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kUnknown);
  question.match = [](const OptionOf&, int) { return DeviceMatch::kTainted; };
  EXPECT_EQ(FirstFit(question).end, SearchEnd::kNone);
}

TEST(FirstFit, AnAllocationHasNoMoreThan32Devices) {
  EXPECT_EQ(FirstFit(Ask(40, {{{Count(32)}}})).end, SearchEnd::kFound);
  EXPECT_EQ(FirstFit(Ask(40, {{{Count(33)}}})).end, SearchEnd::kError);
  EXPECT_EQ(FirstFit(Ask(80, {{{Count(32)}}, {{Count(32)}}})).end, SearchEnd::kFound);
  EXPECT_EQ(FirstFit(Ask(80, {{{Count(20), Count(20)}}})).end, SearchEnd::kError);
  constexpr auto kMany = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(FirstFit(Ask(8, {{{Count(kMany)}}})).end, SearchEnd::kError);
  const SearchRequest either{{{false, kMany}, {false, 2}}, true};
  EXPECT_EQ(FirstFit(Ask(8, {{{either}}})).end, SearchEnd::kFound);
  const SearchRequest all_or_two{{{true, 1}, {false, 2}}, true};
  EXPECT_EQ(DevicesOf(FirstFit(Ask(40, {{{all_or_two}}}))), (Devices{0, 1}));
}

TEST(FirstFit, ASearchWithoutEndIsGivenUp) {
  // 20 devices of 20 values: no two of them match.
  std::vector<int> values;
  for (int i = 0; i < 60; ++i) values.push_back(i / 3);
  DeviceQuestion question =
      Ask(60, {{{Count(3), Count(3), Count(3), Count(3), Count(3), Count(3), Count(3), Count(4)}}});
  for (int request = 0; request < 8; ++request) {
    SearchConstraint one = Constraint(false, values, 8);
    for (int other = 0; other < 8; ++other) {
      if (other != request) one.covers[static_cast<std::size_t>(other)] = {false};
    }
    question.claims[0].constraints.push_back(one);
  }
  const PickedDevices picked = FirstFit(question);
  EXPECT_EQ(picked.end, SearchEnd::kUnknown);
  EXPECT_LE(picked.steps, kMostFitSteps + 1);
}

// The less the higher the numbers of the devices.
SetRating ByLast(std::span<const PickedDevice> set) {
  std::int64_t sum = 0;
  for (const PickedDevice& each : set) sum -= each.device;
  return {sum};
}

TEST(BestSet, IsTheBestOfAllThatFit) {
  DeviceQuestion question = Ask(6, {{{Count(2)}}});
  question.devices[5].taken = true;
  const PickedDevices picked = BestSet(question, ByLast);
  EXPECT_EQ(DevicesOf(picked), (Devices{3, 4}));
  EXPECT_TRUE(picked.is_best);
  question.claims[0].constraints = {Constraint(false, {0, 0, 0, 1, 2, 2})};
  EXPECT_EQ(DevicesOf(BestSet(question, ByLast)), (Devices{1, 2}));
}

TEST(BestSet, KeepsThePreferencesOfTheFirstFit) {
  const SearchRequest request{{{false, 2}, {false, 1}}, true};
  const PickedDevices picked = BestSet(Ask(4, {{{request}}}), ByLast);
  EXPECT_EQ(DevicesOf(picked), (Devices{2, 3}));
  EXPECT_EQ(picked.devices[0].of.option, 0);
}

TEST(BestSet, RequestsThatAreAlikeAreNotExchanged) {
  // Eight devices in eight ways each: 40,320 orders of one set.
  std::vector<SearchClaim> claims(8, SearchClaim{{Count(1)}});
  const PickedDevices picked = BestSet(Ask(8, claims), ByLast);
  EXPECT_TRUE(picked.is_best);
  EXPECT_LT(picked.steps, 3000);
  EXPECT_EQ(DevicesOf(BestSet(Ask(4, {{{Count(1), Count(1)}}}), ByLast)), (Devices{2, 3}));
}

TEST(BestSet, OfTooManySetsItIsTheBestOfThoseSeen) {
  const PickedDevices picked = BestSet(Ask(32, {{{Count(16)}}}), ByLast);
  EXPECT_EQ(picked.end, SearchEnd::kFound);
  EXPECT_FALSE(picked.is_best);
  EXPECT_LE(picked.steps, kMostFitSteps + kMostSetSteps + 2);
}

TEST(BestSet, LeavesOutWhatCannotBeEvaluatedOnceThereIsAFirstFit) {
  DeviceQuestion question = Ask(4, {{{Count(1)}}});
  question.match = [](const OptionOf&, int device) {
    return device == 3 ? DeviceMatch::kError : DeviceMatch::kYes;
  };
  EXPECT_EQ(DevicesOf(BestSet(question, ByLast)), (Devices{2}));
}

}  // namespace
}  // namespace berth::test::device_search_test
