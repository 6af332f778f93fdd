// SPDX-License-Identifier: Apache-2.0
//
// Devices that several claims share, on clusters as people have them: pods that ask for parts of
// GPUs, beside taints, selectors, DaemonSets and other devices. A model of its own says which nodes
// have the parts. For each pod
//   - filter, explain and what dra.preempt asks first agree with it, and with each other;
//   - what is chosen for the claims is on such a node, and no device is given beyond what it has;
//   - evictions help: the pod fits once the victims are gone, and none of them could have stayed.
//     Where nobody is to go, nobody's end would have helped.
// BERTH_SHARED_WORLDS (40): how many. A failure prints the seed.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "scoring/admission.h"
#include "scoring/claims/claim_choice.h"
#include "scoring/explain/other_limits.h"
#include "server/extender/extender.h"
#include "server/extender/inquiry.h"
#include "test/support/drawn.h"
#include "test/support/wire_fixture.h"
#include "test/support/worlds.h"

namespace berth::test::shared_devices_test {
namespace {

constexpr const char* kDriver = "gpu.nvidia.com";
constexpr std::int64_t kMemory = 80;

// What claims get of a device.
enum class Policy { kAny, kSteps, kValues };

struct Device {
  bool divisible = true, tainted = false;
  std::int64_t numa = 0;
};

// One device for a claim, of one of its requests.
struct Slot {
  int request = 0;
  std::optional<std::int64_t> memory;
  std::optional<std::int64_t> numa;
};
using Asked = std::vector<Slot>;

// What a claim has: by device how much; all of it of one that is not shared.
using Has = std::map<int, std::int64_t>;

struct Tally {
  int asks = 0, fitted = 0, evictions = 0, nowhere = 0;
};

// The devices of one node, and who has what of them.
class Model {
 public:
  std::vector<Device> devices;
  Policy policy = Policy::kAny;
  std::map<std::string, Has> claims;  // by "namespace/name"

  [[nodiscard]] std::optional<std::int64_t> Takes(std::optional<std::int64_t> asked) const {
    std::int64_t takes = asked.value_or(policy == Policy::kValues ? 20 : kMemory);
    if (asked && policy == Policy::kSteps)
      takes = std::max<std::int64_t>(20, (takes + 9) / 10 * 10);
    if (asked && policy == Policy::kValues) takes = takes <= 20 ? 20 : takes <= 40 ? 40 : 80;
    if (asked.value_or(0) > kMemory || takes > kMemory) return std::nullopt;
    return takes;
  }
  [[nodiscard]] bool Fits(const Asked& asked, const std::set<std::string>& gone = {}) const {
    std::vector<std::int64_t> left(devices.size(), kMemory);
    for (const auto& [claim, has] : claims) {
      if (gone.contains(claim)) continue;
      for (const auto& [device, memory] : has) left[static_cast<std::size_t>(device)] -= memory;
    }
    return Fits(asked, 0, 0, left);
  }
  void ExpectNoneBeyond(const std::string& where) const {
    std::vector<std::int64_t> used(devices.size(), 0);
    for (const auto& [claim, has] : claims) {
      for (const auto& [device, memory] : has) used[static_cast<std::size_t>(device)] += memory;
    }
    for (const std::int64_t memory : used) EXPECT_LE(memory, kMemory) << where;
  }

 private:
  bool Fits(const Asked& asked, std::size_t nth, std::size_t from,
            std::vector<std::int64_t>& left) const {
    if (nth == asked.size()) return true;
    for (std::size_t i = from; i < devices.size(); ++i) {
      const Slot& slot = asked[nth];
      auto takes = Takes(slot.memory);
      if (!devices[i].divisible && !slot.memory) takes = kMemory;
      if (!takes || devices[i].tainted || (slot.numa && *slot.numa != devices[i].numa)) continue;
      const std::int64_t memory = devices[i].divisible ? *takes : kMemory;
      if (memory > left[i]) continue;
      left[i] -= memory;
      const bool same = nth + 1 < asked.size() && asked[nth + 1].request == slot.request;
      const bool fits = Fits(asked, nth + 1, same ? i + 1 : 0, left);
      left[i] += memory;
      if (fits) return true;
    }
    return false;
  }
};

class Driver {
 public:
  Driver(std::uint64_t seed, Tally& tally)
      : seed_(seed),
        tally_(tally),
        world_(seed, {.nodes = 3 + static_cast<int>(seed % 4), .waiting = 0, .gangs = false}),
        random_(world_.random()) {
    DeviceClass gpu;
    gpu.name = "gpu";
    gpu.whole = true;
    gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
    classes_.Put(gpu);
    if (has_budgets()) world_.PutBudgets(budgets_);
    for (NodeSpec spec : world_.nodes()) {
      const std::size_t gpus = spec.gpus.size();
      if (gpus > 0 && random_.Chance(75)) {
        spec.gpus.clear();
        Draw(gpus, models_[spec.name]);
      }
      Apply(NodeUpserted{spec});
    }
    for (const auto& [node, model] : models_) Show(node);
    for (const World::RunningPod& running : world_.pods()) {
      if (!running.ended) Start(running);
    }
  }

  void Run(int pods) {
    for (int i = 0; i < pods && !testing::Test::HasFailure(); ++i) {
      PodRequest pod = world_.APod();
      if (pod.gang.empty() && !pod.domain.required) Ask(WithoutGpus(std::move(pod)), DrawAsked());
      if (random_.Chance(20)) EndSomebody();
    }
  }

 private:
  [[nodiscard]] bool has_budgets() const { return seed_ % 2 == 0; }
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }

  void Draw(std::size_t gpus, Model& model) {
    model.policy = random_.OneOf<Policy>({Policy::kAny, Policy::kSteps, Policy::kValues});
    const bool mixed = random_.Chance(30);
    for (std::size_t i = 0; i < gpus; ++i) {
      model.devices.push_back({.divisible = !mixed || random_.Chance(50),
                               .tainted = random_.Chance(8),
                               .numa = i < gpus / 2 ? 0 : 1});
    }
  }

  Asked DrawAsked() {
    Asked asked;
    const int requests = random_.Chance(75) ? 1 : 2;
    for (int request = 0; request < requests; ++request) {
      Slot slot{.request = request, .memory = {}, .numa = {}};
      if (random_.Chance(75))
        slot.memory = random_.OneOf<std::int64_t>({10, 20, 25, 40, 60, 80, 90});
      if (random_.Chance(20)) slot.numa = random_.Between(0, 1);
      const int count = random_.Chance(80) ? 1 : 2;
      for (int i = 0; i < count; ++i) asked.push_back(slot);
    }
    return asked;
  }
  static DeviceClaim ClaimFor(const Asked& asked) {
    DeviceClaim claim;
    for (const Slot& slot : asked) {
      if (std::cmp_less(slot.request, claim.requests.size())) {
        ++claim.requests.back().wants.front().count;
        continue;
      }
      DeviceWant want{.name = {},
                      .device_class = "gpu",
                      .selectors = {},
                      .tolerations = {},
                      .tolerations_json = {}};
      if (slot.memory) want.capacity = {{"memory", *slot.memory}};
      if (slot.numa) {
        want.selectors = {"device.attributes['gpu.nvidia.com'].numa == " +
                          std::to_string(*slot.numa)};
      }
      claim.requests.push_back({"r" + std::to_string(slot.request), {std::move(want)}});
    }
    return claim;
  }

  // It asks by a claim instead.
  static PodRequest WithoutGpus(PodRequest pod) {
    const RequestShape before = pod.shape;
    pod.shape = {};
    pod.shape.cpu_milli = before.cpu_milli;
    pod.shape.memory_bytes = before.memory_bytes;
    pod.shape.ephemeral_bytes = before.ephemeral_bytes;
    pod.claims = {pod.id.name + "-gpus"};
    return pod;
  }
  static std::string ClaimOf(const PodRequest& pod) {
    return pod.id.namespace_name + "/" + pod.claims.front();
  }

  void Start(const World::RunningPod& running) {
    PodBound bound{.pod = running.pod, .placement = running.placement, .life = running.life};
    const auto model = models_.find(running.placement.node);
    if (model == models_.end() || !running.pod.shape.wants_gpu()) return Apply(bound);
    bound.pod = WithoutGpus(running.pod);
    bound.placement = {.node = running.placement.node, .grants = {}};
    // Two pods with one claim: neither gives anything back.
    const bool shares = !model->second.claims.empty() && random_.Chance(10);
    const std::string other = shares ? model->second.claims.begin()->first : "";
    if (other.starts_with(bound.pod.id.namespace_name + "/")) {
      bound.pod.claims = {other.substr(other.find('/') + 1)};
    } else if (!Choose(bound.pod, DrawAsked(), {running.placement.node})) {
      return;
    }
    ++users_[ClaimOf(bound.pod)];
    Apply(bound);
  }

  void EndSomebody() {
    std::vector<const PodRecord*> all;
    const auto snapshot = state_.Current();
    for (const auto& [name, model] : models_) {
      for (const auto& held : snapshot->FindNode(name)->pods()) {
        if (!held->pod.claims.empty()) all.push_back(held.get());
      }
    }
    if (!all.empty()) End(*random_.OneOf(all));
  }
  void End(const PodRecord& record) {
    const std::string node = record.placement.node, claim = ClaimOf(record.pod);
    Apply(PodGone{record.pod.id.uid});
    if (--users_[claim] == 0) models_[node].claims.erase(claim);
    Show(node);
  }

  // What slices and claims say now.
  void Show(const std::string& node) {
    const Model& model = models_[node];
    auto slice = std::make_shared<PublishedSlice>();
    slice->name = slice->pool = slice->node = node;
    slice->driver = kDriver;
    slice->slices_in_pool = 1;
    DeviceCapacity memory{.name = "memory", .there_is = kMemory};
    if (model.policy == Policy::kSteps) {
      memory.unasked = kMemory;
      memory.least = 20;
      memory.step = 10;
    }
    if (model.policy == Policy::kValues) {
      memory.unasked = 20;
      memory.values = {20, 40, 80};
    }
    for (std::size_t i = 0; i < model.devices.size(); ++i) {
      PublishedDevice device{.name = "gpu-" + std::to_string(i),
                             .seen = cel::Device(kDriver),
                             .taints = {},
                             .consumes = {}};
      device.seen.SetAttribute("numa", model.devices[i].numa);
      device.divisible = model.devices[i].divisible;
      device.capacity = std::make_shared<const DeviceCapacities>(DeviceCapacities{memory});
      if (model.devices[i].tainted) device.taints = {{"sick", "", TaintEffect::kNoSchedule}};
      slice->devices.push_back(std::move(device));
    }
    NodeDevices devices{GatherPools({std::move(slice)}), {}};
    std::vector<ClaimedGpu> held;
    for (const auto& [claim, has] : model.claims) {
      for (const auto& [number, amount] : has) {
        const std::string name = "gpu-" + std::to_string(number);
        ClaimedGpu& gpu = held.emplace_back(ClaimedGpu{claim, name, "", number, "", -1});
        gpu.shared = model.devices[static_cast<std::size_t>(number)].divisible;
        if (gpu.shared) {
          gpu.parts = {{"memory", amount}};
          AddUses(devices.parts[{node, name}], {{"memory", amount}});
        } else {
          devices.taken.emplace(node, name);
        }
      }
    }
    devices_.Put({{node, std::move(devices)}});
    Apply(GpusClaimed{node, std::move(held)});
  }

  // As Berth chooses for the claims of a pod that fits these nodes. Nothing: none has the devices.
  std::optional<std::string> Choose(const PodRequest& pod, const Asked& asked,
                                    const std::vector<std::string>& names) {
    const auto find_class = [this](std::string_view name) { return classes_.Named(name); };
    auto question = ClaimQuestion::Make({ClaimFor(asked)}, find_class);
    EXPECT_TRUE(question);
    const auto offers = devices_.Current();
    std::vector<ClaimNode> nodes;
    for (const std::string& name : names) {
      nodes.push_back({.name = name, .devices = offers->find(name)->second.get()});
    }
    const ClaimChoice choice = ChooseForClaims(*question, nodes);
    if (choice.end != SearchEnd::kFound) return std::nullopt;
    const std::string node = names[choice.node];
    Has& has = models_[node].claims[ClaimOf(pod)];
    for (const ChosenDevice& chosen : choice.devices) {
      const int number = std::stoi(chosen.device.substr(4));
      const bool shared = models_[node].devices[static_cast<std::size_t>(number)].divisible;
      EXPECT_EQ(shared, chosen.part.has_value()) << Where(pod);
      has[number] += shared ? chosen.part->at("memory") : kMemory;
    }
    models_[node].ExpectNoneBeyond(Where(pod) + node);
    Show(node);
    return node;
  }

  // kube-scheduler's own checks but for devices.
  static bool LetsIn(const Node& node, const PodRequest& pod) {
    return Admits(node.spec(), pod) == Reason::kFits && Fits(node, pod.shape) &&
           LackOf(node, pod).empty();
  }

  void Ask(const PodRequest& pod, const Asked& asked) {
    ++tally_.asks;
    open_.Put({{ClaimOf(pod), {.asks = std::make_shared<const DeviceClaim>(ClaimFor(asked))}}},
              false);
    const Extender::Moment now = extender_.Now();
    const Inquiry inquiry(extender_, now);
    std::vector<NodeIndex> candidates;
    for (const auto& [name, model] : models_) {
      const NodeIndex node = now.snapshot->names().Find(name);
      if (LetsIn(now.snapshot->node(node), pod) && model.Fits(asked)) candidates.push_back(node);
    }
    std::vector<std::string> fitting;
    const FilterAnswer answer = extender_.Filter(now, pod, candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (answer.reasons[i] == Reason::kFits) {
        fitting.emplace_back(now.snapshot->names().name(candidates[i]));
      }
    }
    auto room = inquiry.RoomOfClaims(pod);
    ASSERT_TRUE(room) << Where(pod) << room.error().message;
    const PodExplanation told = inquiry.ExplainClaims(pod, *room);
    EXPECT_EQ(told.fitting, fitting.size()) << Where(pod) << told.sentence;
    EXPECT_EQ(told.sentence.starts_with("fits none"), fitting.empty())
        << Where(pod) << told.sentence;
    const bool would_fit = inquiry.WouldFit(pod, &*room);
    EXPECT_TRUE(would_fit || fitting.empty()) << Where(pod) << told.sentence;
    if (!fitting.empty()) return Place(pod, asked, fitting);
    Preempt(inquiry, now, pod, asked, *room);
  }

  void Place(const PodRequest& pod, const Asked& asked, const std::vector<std::string>& fitting) {
    const auto node = Choose(pod, asked, fitting);
    ASSERT_TRUE(node) << Where(pod) << "nothing is chosen on " << fitting.front();
    ++tally_.fitted;
    ++users_[ClaimOf(pod)];
    open_.Put({{ClaimOf(pod), {.allocated = true, .node = *node}}}, false);
    PodBound bound{.pod = pod, .placement = {.node = *node, .grants = {}}};
    bound.life.started = clock_.Wall();
    Apply(bound);
  }

  std::set<std::string> GivenBackBy(const std::vector<const PodRecord*>& gone) {
    std::map<std::string, int> users = users_;
    std::set<std::string> claims;
    for (const PodRecord* pod : gone) {
      if (!pod->pod.claims.empty() && --users[ClaimOf(pod->pod)] == 0) {
        claims.insert(ClaimOf(pod->pod));
      }
    }
    return claims;
  }

  bool FitsWithout(const Node& node, const PodRequest& pod, const Asked& asked,
                   const std::vector<const PodRecord*>& gone) {
    return LetsIn(WithoutPods(node, gone), pod) &&
           models_[node.spec().name].Fits(asked, GivenBackBy(gone));
  }

  void Preempt(const Inquiry& inquiry, const Extender::Moment& now, const PodRequest& pod,
               const Asked& asked, ClaimRoom& room) {
    const DeviceVictims victims = inquiry.VictimsForDevices(pod, {}, &room);
    EXPECT_FALSE(room.ran_out()) << Where(pod);
    if (victims.outcome == DeviceVictims::Outcome::kNowhere)
      return ExpectNobodyHelps(now, pod, asked);
    if (victims.outcome != DeviceVictims::Outcome::kEvict) return;
    const Node& node = now.snapshot->node(victims.node);
    const std::string where = Where(pod) + "on " + node.spec().name + " ";
    std::vector<const PodRecord*> gone;
    for (const std::string& uid : victims.uids) gone.push_back(node.FindPod(uid));
    EXPECT_TRUE(FitsWithout(node, pod, asked, gone)) << where << "evictions in vain";
    for (std::size_t i = 0; i < gone.size(); ++i) {
      EXPECT_LT(gone[i]->pod.priority, pod.priority) << where;
      std::vector<const PodRecord*> fewer = gone;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(FitsWithout(node, pod, asked, fewer))
          << where << gone[i]->pod.id.full_name() << " could have stayed";
    }
    ++tally_.evictions;
    if (testing::Test::HasFailure()) return;
    for (const PodRecord* victim : gone) End(*victim);
    Ask(pod, asked);
  }

  void ExpectNobodyHelps(const Extender::Moment& now, const PodRequest& pod, const Asked& asked) {
    ++tally_.nowhere;
    if (has_budgets() || !pod.may_preempt || !pod.refusal.empty()) return;
    for (const auto& [name, model] : models_) {
      const Node& node = *now.snapshot->FindNode(name);
      std::vector<const PodRecord*> gone;
      for (const auto& held : node.pods()) {
        const bool may_go = held->state == PodState::kBound && !held->pod.claims.empty() &&
                            held->pod.priority < pod.priority && users_[ClaimOf(held->pod)] == 1;
        if (may_go) gone.push_back(held.get());
      }
      EXPECT_FALSE(!gone.empty() && FitsWithout(node, pod, asked, gone))
          << Where(pod) << "on " << name << " evictions would have helped";
    }
  }

  std::string Where(const PodRequest& pod) {
    return "seed " + std::to_string(seed_) + ", question " + std::to_string(tally_.asks) + ", " +
           pod.id.full_name() + " of priority " + std::to_string(pod.priority) + ": ";
  }

  const std::uint64_t seed_;
  Tally& tally_;
  World world_;
  RandomWorld& random_;
  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  DisruptionBudgets budgets_;
  DeviceRooms rooms_;
  ScriptedBinder binder_;
  SilentSink sink_;
  OpenClaims open_;
  DeviceOffers devices_;
  DeviceClasses classes_;
  GangClaims claims_{open_, devices_, classes_};
  std::map<std::string, Model> models_;  // by node
  std::map<std::string, int> users_;     // pods, by claim
  Extender extender_{
      {.state = state_,
       .binder = binder_,
       .sink = sink_,
       .clock = clock_,
       .budgets = &budgets_,
       .behind_scheduler = true,
       .waiting = &waiting_,
       .rooms = &rooms_,
       .claims = &claims_},
      {.engine = EngineOf("best-fit"), .reservation_time = std::chrono::seconds(30)}};
};

TEST(SharedDevices, FilterExplainAndPreemptSayTheSameAndNothingIsGivenTwice) {
  const char* const asked = std::getenv("BERTH_SHARED_WORLDS");
  const int worlds = asked == nullptr ? Drawn(40) : std::atoi(asked);
  Tally tally;
  for (int seed = 1; seed <= worlds && !HasFailure(); ++seed) {
    Driver(static_cast<std::uint64_t>(seed), tally).Run(60);
  }
  EXPECT_GT(tally.fitted, worlds);
  EXPECT_GT(tally.evictions, worlds / 2);
  EXPECT_GT(tally.nowhere, worlds / 2);
  std::cout << tally.asks << " questions, " << tally.fitted << " placed, " << tally.evictions
            << " evictions\n";
}

}  // namespace
}  // namespace berth::test::shared_devices_test
