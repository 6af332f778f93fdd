// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of pods to which their neighbours matter, against all sets that there are: random
// machines, random pods on them, and the rules of neighbours.h written down a second time.
#include "scoring/devices/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <vector>

#include "scoring/devices/device_picker.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::neighbours_property_test {
namespace {

constexpr int kGpus = 6;

struct Machine {
  LinkMatrix matrix;
  bool known = true;  // its links
  ANode node = ANode("n");
  GpuMask of_role[2] = {0, 0};  // the GPUs of the pods "a" and "b" that count
};

// Some NICs, each with some relation to each GPU.
LinkMatrix WithNics(Random& random, const LinkMatrix& gpus) {
  std::vector<std::string> nics;
  for (int i = Draw(random, 3); i > 0; --i) nics.push_back("NIC" + std::to_string(i));
  LinkMatrix matrix = *MakeLinkMatrix(gpus.gpus, nics);
  for (int a = 0; a < kGpus; ++a) {
    for (int b = 0; b < kGpus; ++b) matrix.link(a, b) = gpus.link(a, b);
    for (int nic = kGpus; nic < matrix.device_count(); ++nic) {
      constexpr LinkType kKinds[] = {LinkType::kSys, LinkType::kNode, LinkType::kPxb,
                                     LinkType::kUnknown};
      matrix.link(a, nic).pcie = matrix.link(nic, a).pcie = kKinds[Draw(random, 4)];
    }
  }
  matrix.numa_affinity = gpus.numa_affinity;
  return matrix;
}

Machine AMachine(Random& random) {
  Machine machine;
  machine.matrix = WithNics(random, RandomMatrix(random, kGpus));
  machine.known = Draw(random, 4) > 0;
  machine.node.Gpus(kGpus);
  if (machine.known) machine.node.Linked(LinksOf(machine.matrix));
  for (int i = 0; i < 4; ++i) {
    const int gpu = Draw(random, kGpus), role = Draw(random, 2);
    const bool counts = Draw(random, 4) > 0;
    APod pod = APod("p" + std::to_string(i)).Share(200 + 100 * Draw(random, 3));
    pod.Labelled({{"role", role == 0 ? "a" : "b"}}).Namespace(counts ? "default" : "other");
    machine.node.Holding(pod, {gpu});
    if (counts) machine.of_role[role] |= GpuBit(gpu);
  }
  return machine;
}

bool UnderOneRoot(const LinkMatrix& matrix, int a, int b) {
  const auto near = [](LinkType pcie) { return pcie == LinkType::kPix || pcie == LinkType::kPxb; };
  if (a == b) return true;
  if (matrix.link(a, b).fabric == LinkType::kUnknown) return near(matrix.link(a, b).pcie);
  for (int nic = kGpus; nic < matrix.device_count(); ++nic) {
    if (near(matrix.link(a, nic).pcie) && near(matrix.link(b, nic).pcie)) return true;
  }
  return false;
}

// How far from the best the GPU is: by far, by near, by the NIC.
using Amiss = std::tuple<int, int, int>;
Amiss AmissOfGpu(const Machine& machine, int gpu, bool says_near, bool says_far, bool beside_nic) {
  const auto any_of = [](GpuMask set, auto holds) {
    bool found = false;
    ForEachGpu(set, [&](int other) { found = found || holds(other); });
    return found;
  };
  const auto numa = NumaGroupsOf(machine.matrix).value_or(std::vector<int>(kGpus, 0));
  const auto same_numa = [&](int other) {
    return numa[static_cast<std::size_t>(other)] == numa[static_cast<std::size_t>(gpu)];
  };
  const auto same_root = [&](int other) { return UnderOneRoot(machine.matrix, gpu, other); };
  const auto linked = [&](int other) {
    return machine.matrix.link(gpu, other).fabric != LinkType::kUnknown;
  };
  int far = 0, near = 0, nic = 0;
  const GpuMask from = machine.of_role[0], to = machine.of_role[1];
  if (says_far && from != 0) {
    const bool root = !machine.known || any_of(from, same_root);
    far = (from & GpuBit(gpu)) != 0 ? 3 : root ? 2 : any_of(from, same_numa) ? 1 : 0;
  }
  if (says_near) {
    near = to == 0                   ? 4
           : (to & GpuBit(gpu)) != 0 ? 0
           : !machine.known          ? 3
           : any_of(to, linked)      ? 0
           : any_of(to, same_root)   ? 1
           : any_of(to, same_numa)   ? 2
                                     : 3;
  }
  if (beside_nic && machine.known && !machine.matrix.nics.empty()) {
    LinkType best = LinkType::kUnknown;
    for (int i = kGpus; i < machine.matrix.device_count(); ++i) {
      best = std::max(best, machine.matrix.link(gpu, i).pcie);
    }
    nic = best == LinkType::kPxb ? 0 : best == LinkType::kNode ? 1 : 2;
  }
  return {far, near, nic};
}

TEST(NeighboursProperty, NoOtherSetOfFreeGpusSuitsThePodBetter) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 3000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Machine machine = AMachine(random);
    const bool says_near = Draw(random, 2) > 0, says_far = Draw(random, 2) > 0;
    const bool beside_nic = Draw(random, 3) == 0;
    const int count = 1 + Draw(random, 2);
    APod pod("next");
    if (Draw(random, 2) > 0) {
      pod.Whole(count);
    } else {
      pod.Shares(count, 300);
    }
    if (says_far) pod.Far("role", "a");
    if (says_near) pod.Near("role", "b");
    if (beside_nic) pod.BesideNic();
    const Node node = machine.node.Build();
    const auto worst_of = [&](GpuMask set) {
      Amiss worst{-1, -1, -1};
      ForEachGpu(set, [&](int gpu) {
        worst = std::max(worst, AmissOfGpu(machine, gpu, says_near, says_far, beside_nic));
      });
      return worst;
    };
    const GpuMask free = FreeGpus(node, pod.Shape());
    Amiss best{99, 99, 99};
    for (GpuMask set = 1; set < GpuBit(kGpus); ++set) {
      if ((set & ~free) == 0 && std::popcount(set) == count) best = std::min(best, worst_of(set));
    }
    if (best == Amiss{99, 99, 99}) continue;  // it does not fit
    for (const DeviceRule rule :
         {DeviceRule::kFirst, DeviceRule::kTightest, DeviceRule::kBestScore}) {
      const auto choices = DeviceChoices(node, pod.Shape(), rule);
      ASSERT_FALSE(choices.empty());
      // Whole GPUs of a node without links share none, and all its GPUs suit alike.
      for (const DeviceChoice& choice : choices) EXPECT_EQ(worst_of(choice.gpus), best);
    }
    EXPECT_EQ(NeighbourPenalty(node, pod.Shape()) == 0,
              std::get<0>(best) == 0 && std::get<1>(best) == 0);
    ++compared;
  }
  EXPECT_GT(compared, 2000);
}

}  // namespace
}  // namespace berth::test::neighbours_property_test
