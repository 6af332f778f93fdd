// SPDX-License-Identifier: Apache-2.0
//
// Gangs whose members get devices by claims against all there is: on small random clusters every
// choice of nodes and devices is tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/gangs/gang_devices.h"
#include "scoring/gangs/gang_plan.h"
#include "test/support/drawn.h"
#include "test/support/random_world.h"

namespace berth::test::gang_devices_property_test {
namespace {

constexpr char kDriver[] = "gpu.nvidia.com";
const TopologyLevels kLevels = {{"rack", {"rack"}}};

// A device as this test sees it.
struct ADevice {
  std::string name;
  int numa = 0;
  bool big = false;  // its model
  int slices = 0;    // of its GPU, as bits; 0 = it is no part
  bool tainted = false;
};

struct AMachine {
  std::string name;
  std::string rack;
  int cpu = 0;
  std::vector<ADevice> devices;
  std::set<std::string> taken;
};

// What a claim asks for, with one request.
struct AnAsk {
  int count = 1;
  bool all = false;
  bool only_big = false;
  enum class Numa { kAny, kOne, kApart } numa = Numa::kAny;
  int else_count = 0;  // firstAvailable: that many, else so many
};

struct AKind {
  int cpu = 0;
  int members = 0;
  std::vector<AnAsk> claims = {};
};

struct Case {
  std::vector<AMachine> machines;
  std::vector<AKind> kinds;
  bool one_rack = false;
};

class CaseMaker {
 public:
  explicit CaseMaker(std::uint64_t seed) : world_(seed) {}

  Case Make() {
    Case made;
    const int machines = world_.Between(1, 4);
    for (int i = 0; i < machines; ++i) made.machines.push_back(Machine(i));
    const int kinds = world_.Between(1, 2);
    for (int i = 0; i < kinds; ++i) made.kinds.push_back(Kind(kinds));
    made.one_rack = world_.Chance(25);
    return made;
  }
  RandomWorld& world() { return world_; }

 private:
  AMachine Machine(int i) {
    AMachine machine{"n" + std::to_string(i),
                     "r" + std::to_string(world_.Between(0, 1)),
                     world_.Between(2, 8),
                     {},
                     {}};
    const int devices = world_.Between(1, 4);
    const bool is_cut = world_.Chance(25);
    for (int d = 0; d < devices; ++d) {
      ADevice device{.name = "d" + std::to_string(d), .numa = 2 * d / devices};
      device.big = world_.Chance(60);
      if (is_cut) device.slices = world_.Between(1, 7);
      device.tainted = world_.Chance(8);
      machine.devices.push_back(device);
    }
    for (const ADevice& device : machine.devices) {
      // Those who took devices took no slice twice.
      const bool free = std::ranges::none_of(machine.devices, [&](const ADevice& other) {
        return machine.taken.contains(other.name) && (other.slices & device.slices) != 0;
      });
      if (free && world_.Chance(20)) machine.taken.insert(device.name);
    }
    return machine;
  }

  AKind Kind(int kinds) {
    AKind kind{.cpu = world_.Between(0, 3), .members = world_.Between(1, kinds == 1 ? 4 : 2)};
    const int claims = world_.Chance(20) ? 2 : 1;
    for (int i = 0; i < claims; ++i) {
      AnAsk ask{.count = world_.OneOf<int>({1, 1, 1, 2, 2, 3})};
      ask.only_big = world_.Chance(30);
      if (ask.count > 1 && world_.Chance(40)) {
        ask.numa = world_.Chance(60) ? AnAsk::Numa::kOne : AnAsk::Numa::kApart;
      }
      if (ask.count > 1 && world_.Chance(25)) ask.else_count = 1;
      ask.all = ask.else_count == 0 && world_.Chance(5);
      kind.claims.push_back(ask);
    }
    return kind;
  }

  RandomWorld world_;
};

// ---- every way there is

class Exhaustive {
 public:
  explicit Exhaustive(const Case& made) : case_(made) {}

  bool CanBePlaced() {
    std::set<std::string> racks = {""};
    if (case_.one_rack) {
      racks.clear();
      for (const AMachine& machine : case_.machines) racks.insert(machine.rack);
    }
    return std::ranges::any_of(racks, [this](const std::string& rack) {
      rack_ = rack;
      used_.assign(case_.machines.size(), {});
      return Members(0, 0, 0);
    });
  }

 private:
  struct Used {
    int cpu = 0;
    std::set<std::string> devices;
  };

  // from: the node of the member before, of the same kind: these are alike.
  bool Members(std::size_t kind, int member, std::size_t from) {
    if (kind == case_.kinds.size()) return true;
    const AKind& what = case_.kinds[kind];
    if (member == what.members) return Members(kind + 1, 0, 0);
    for (std::size_t m = from; m < case_.machines.size(); ++m) {
      const AMachine& machine = case_.machines[m];
      if (!rack_.empty() && machine.rack != rack_) continue;
      if (used_[m].cpu + what.cpu > machine.cpu) continue;
      used_[m].cpu += what.cpu;
      if (Claims(m, what, 0, [&] { return Members(kind, member + 1, m); })) return true;
      used_[m].cpu -= what.cpu;
    }
    return false;
  }

  bool Claims(std::size_t m, const AKind& what, std::size_t claim,
              const std::function<bool()>& then) {
    if (claim == what.claims.size()) return then();
    const AnAsk& ask = what.claims[claim];
    const auto next = [&] { return Claims(m, what, claim + 1, then); };
    if (ask.all) {
      std::size_t suit = 0;
      for (const ADevice& device : case_.machines[m].devices) {
        suit += device.big || !ask.only_big ? 1 : 0;
      }
      return suit > 0 && Devices(m, ask, static_cast<int>(suit), 0, {}, next);
    }
    if (Devices(m, ask, ask.count, 0, {}, next)) return true;
    return ask.else_count > 0 && Devices(m, ask, ask.else_count, 0, {}, next);
  }

  bool Devices(std::size_t m, const AnAsk& ask, int left, std::size_t from, std::set<int> numas,
               const std::function<bool()>& then) {
    if (left == 0) return then();
    const AMachine& machine = case_.machines[m];
    for (std::size_t d = from; d < machine.devices.size(); ++d) {
      const ADevice& device = machine.devices[d];
      if (!IsFree(m, device) || device.tainted || (ask.only_big && !device.big)) continue;
      std::set<int> now = numas;
      const bool is_new = now.insert(device.numa).second;
      if (ask.numa == AnAsk::Numa::kOne && now.size() > 1) continue;
      if (ask.numa == AnAsk::Numa::kApart && !is_new) continue;
      used_[m].devices.insert(device.name);
      if (Devices(m, ask, left - 1, d + 1, now, then)) return true;
      used_[m].devices.erase(device.name);
    }
    return false;
  }

  bool IsFree(std::size_t m, const ADevice& device) const {
    for (const ADevice& other : case_.machines[m].devices) {
      const bool is_used =
          case_.machines[m].taken.contains(other.name) || used_[m].devices.contains(other.name);
      if (!is_used) continue;
      if (other.name == device.name || (other.slices & device.slices) != 0) return false;
    }
    return true;
  }

  const Case& case_;
  std::string rack_;
  std::vector<Used> used_;
};

// ---- the same as Berth sees it

NodeDevices DevicesOf(const AMachine& machine) {
  auto slice = std::make_shared<PublishedSlice>();
  slice->name = slice->pool = machine.name;
  slice->driver = kDriver;
  slice->slices_in_pool = 1;
  for (int bit = 0; bit < 3; ++bit) {
    slice->counters.push_back({"gpu", "slice-" + std::to_string(bit), 1000});
  }
  for (const ADevice& device : machine.devices) {
    PublishedDevice published{
        .name = device.name, .seen = cel::Device(kDriver), .taints = {}, .consumes = {}};
    published.seen.SetAttribute("numaNode", std::int64_t{device.numa});
    published.seen.SetAttribute("model", std::string(device.big ? "big" : "small"));
    if (device.tainted) published.taints.push_back({"broken", "", TaintEffect::kNoSchedule});
    ConsumedCounters counters;
    for (int bit = 0; bit < 3; ++bit) {
      if ((device.slices >> bit) % 2 == 0) continue;
      counters.push_back({"gpu", "slice-" + std::to_string(bit), 1000});
    }
    published.consumes = std::make_shared<const ConsumedCounters>(std::move(counters));
    slice->devices.push_back(std::move(published));
  }
  NodeDevices node{GatherPools({slice}), {}};
  for (const std::string& name : machine.taken) node.taken.emplace(machine.name, name);
  return node;
}

DeviceWant WantOf(const AnAsk& ask, const std::string& name, int count) {
  DeviceWant want{.name = name,
                  .device_class = "gpu",
                  .selectors = {},
                  .all = ask.all,
                  .count = count,
                  .tolerations = {},
                  .tolerations_json = {}};
  if (ask.only_big) want.selectors = {"device.attributes['gpu.nvidia.com'].model == 'big'"};
  return want;
}

std::shared_ptr<const DeviceClaim> ClaimOf(const AnAsk& ask) {
  DeviceClaim claim;
  DeviceRequest& request = claim.requests.emplace_back(DeviceRequest{"r", {}, false});
  request.first_available = ask.else_count > 0;
  request.wants.push_back(WantOf(ask, request.first_available ? "more" : "", ask.count));
  if (request.first_available) request.wants.push_back(WantOf(ask, "less", ask.else_count));
  if (ask.numa != AnAsk::Numa::kAny) {
    claim.constraints.push_back({ask.numa == AnAsk::Numa::kApart, "gpu.nvidia.com/numaNode", {}});
  }
  return std::make_shared<const DeviceClaim>(std::move(claim));
}

std::optional<DeviceClass> FindClass(std::string_view name) {
  DeviceClass gpu;
  gpu.name = name;
  gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
  return gpu;
}

// ---- first fit: each member by itself on the first node that has its devices, as kube-scheduler
// would with nodes in that order
bool FirstFitPlaces(const Case& made, const DeviceOffers::ByNode& offers) {
  std::map<std::string, NodeDevices> now;
  std::map<std::string, int> cpu;
  for (const auto& [name, devices] : offers) now.emplace(name, *devices);
  for (const AMachine& machine : made.machines) cpu[machine.name] = machine.cpu;
  for (const AKind& kind : made.kinds) {
    std::vector<DeviceClaim> claims;
    for (const AnAsk& ask : kind.claims) claims.push_back(*ClaimOf(ask));
    auto question = ClaimQuestion::Make(claims, FindClass);
    for (int member = 0; member < kind.members; ++member) {
      bool placed = false;
      for (auto& [name, devices] : now) {
        if (cpu[name] < kind.cpu) continue;
        const NodeQuestion asked = question->On(devices.pools, devices.taken);
        const PickedDevices picked = FirstFit(asked.question);
        if (picked.end != SearchEnd::kFound) continue;
        for (const PickedDevice& each : picked.devices) {
          devices.taken.emplace(name,
                                asked.sources[static_cast<std::size_t>(each.device)].device->name);
        }
        cpu[name] -= kind.cpu;
        placed = true;
        break;
      }
      if (!placed) return false;
    }
  }
  return true;
}

TEST(GangDevicesProperty, AGangIsPlacedWhereverAnExhaustiveSearchPlacesIt) {
  constexpr std::uint64_t kCases = Drawn(10'000);
  int possible = 0, found = 0, impossible = 0, left = 0, first_fit = 0;
  std::string missed;
  for (std::uint64_t seed = 1; seed <= kCases; ++seed) {
    CaseMaker maker(seed);
    const Case made = maker.Make();
    std::vector<ANode> nodes;
    DeviceOffers::ByNode offers;
    for (const AMachine& machine : made.machines) {
      nodes.push_back(ANode(machine.name).Cpu(machine.cpu).Labelled({{"rack", machine.rack}}));
      offers[machine.name] = std::make_shared<const NodeDevices>(DevicesOf(machine));
    }
    const auto snapshot = SnapshotOf(nodes);
    std::vector<GangDevices::Claims> kinds;
    GangAsk ask;
    for (const AKind& kind : made.kinds) {
      GangDevices::Claims claims;
      for (const AnAsk& each : kind.claims) claims.push_back(ClaimOf(each));
      const auto same = std::ranges::find_if(kinds, [&claims](const auto& other) {
        return std::ranges::equal(other, claims,
                                  [](const auto& a, const auto& b) { return *a == *b; });
      });
      const int number = static_cast<int>(same - kinds.begin());
      if (same == kinds.end()) kinds.push_back(claims);
      for (int m = 0; m < kind.members; ++m) {
        const std::string name =
            "m" + std::to_string(&kind - made.kinds.data()) + "-" + std::to_string(m);
        GangMember member{APod(name).Gang("default/gang").Cpu(kind.cpu).Request()};
        member.claims = number;
        ask.members.push_back(std::move(member));
      }
    }
    ask.minimum = static_cast<std::int64_t>(ask.members.size());
    if (made.one_rack) ask.domain.required = 0;
    auto devices = GangDevices::Make(kinds, FindClass, offers, *snapshot);
    const bool can_be = Exhaustive(made).CanBePlaced();
    if (!devices) {  // no device of the cluster suits: nothing is planned, and nothing can be
      ++left;
      EXPECT_FALSE(can_be) << "seed " << seed << ": " << devices.error().message;
      continue;
    }
    ask.devices = &*devices;
    const DomainTree tree = DomainsOf(*snapshot, kLevels);
    const auto engine = std::make_shared<Engine>(
        BuildProfile(maker.world().AProfile(kEveryDeviceRule), maker.world().AMix()).value());
    GangRoom room;
    const auto plan = PlanGang({snapshot, tree, *engine, room}, ask);
    if (plan) {
      EXPECT_TRUE(can_be) << "seed " << seed;
      std::map<NodeIndex, std::vector<int>> there;
      for (const GangPlan::Place& place : plan->places) {
        auto& counts = there.try_emplace(place.node, kinds.size(), 0).first->second;
        ++counts[static_cast<std::size_t>(ask.members[place.member].claims)];
      }
      for (const auto& [node, counts] : there) {
        EXPECT_TRUE(devices->Has(node, counts)) << "seed " << seed;
      }
    }
    impossible += can_be ? 0 : 1;
    if (!can_be) continue;
    ++possible;
    found += plan ? 1 : 0;
    first_fit += !made.one_rack && FirstFitPlaces(made, offers) ? 1 : 0;
    if (!plan) missed += " " + std::to_string(seed);
  }
  std::printf(
      "possible %d, found %d; impossible %d, of no device that suits %d; first fit, without the "
      "bound to one rack, %d; missed:%s\n",
      possible, found, impossible, left, first_fit, missed.c_str());
  EXPECT_GT(possible, Drawn(1000));
  EXPECT_GT(impossible, Drawn(1000));
  EXPECT_EQ(found, possible) << "seeds" << missed;
}

}  // namespace
}  // namespace berth::test::gang_devices_property_test
