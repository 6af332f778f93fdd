// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_class.h"

#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_devices.h"
#include "scoring/registry.h"

namespace berth {
namespace {

std::int64_t MilliOf(const RequestShape& shape) {
  // A device is less than a GPU; how much less is not worth knowing here.
  if (const MigSlices* mig = shape.mig()) return std::int64_t{kMilliPerGpu} / 2 * mig->count();
  const bool by_memory = shape.is_share() && shape.milli_per_gpu() == 0;
  if (by_memory) return std::int64_t{kMilliPerGpu} / 2 * shape.gpu_count();
  return std::int64_t{shape.gpu_count()} * shape.milli_per_gpu();
}

void FindRoom(const std::shared_ptr<const Snapshot>& snapshot, GangRoom& memo, const GangAsk& ask,
              const GangMember& member, GangClass& alike) {
  const PodRequest& pod = member.pod;
  alike.room = memo.Of(snapshot, pod.shape);
  const bool admission_matters = AdmissionMatters(*snapshot, pod);
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    if (alike.room[i] == 0) continue;
    const Node& node = snapshot->node(i);
    alike.room[i] = std::min(alike.room[i], PodsByOthers(node, pod));
    if (admission_matters && Admits(node.spec(), pod) != Reason::kFits) alike.room[i] = 0;
  }
  for (const NodeIndex node : member.excluded) alike.room[node] = 0;
  if (member.outside != nullptr) {
    for (const NodeIndex node : *member.outside) alike.room[node] = 0;
  }
  if (!pod.refusal.empty()) std::ranges::fill(alike.room, 0);
  if (member.claims == kNoClaims) return;
  const int all = static_cast<int>(ask.members.size());
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    alike.room[i] = ask.devices->Room(i, member.claims, std::min(alike.room[i], all));
  }
}

constexpr std::int64_t kStepsPerTry =
    100;                                // trying a pod on a node costs as much as so many states
constexpr std::size_t kStatesKept = 6;  // per vector of counts

using Counts = std::vector<int>;

// A way to put some pods on a node.
struct Packing {
  Node node;
  std::vector<std::pair<std::size_t, DeviceChoice>> pods;  // class and choice, in order
};

// Counts per class as one number, class 0 counting most.
class Numbering {
 public:
  explicit Numbering(std::span<const GangClass> classes) : weights_(classes.size(), 1) {
    for (std::size_t c = classes.size(); c-- > 0; size_ *= classes[c].count() + 1) {
      weights_[c] = size_;
      if (size_ > kMost) break;
    }
  }
  static constexpr std::int64_t kMost = 1'000'000;
  [[nodiscard]] std::int64_t size() const { return size_; }
  [[nodiscard]] std::int64_t Of(std::span<const int> counts) const {
    return std::inner_product(counts.begin(), counts.end(), weights_.begin(), std::int64_t{0});
  }
  [[nodiscard]] Counts CountsOf(std::int64_t number) const {
    Counts counts(weights_.size());
    for (std::size_t c = 0; c < counts.size(); ++c) {
      counts[c] = static_cast<int>(number / weights_[c]);
      number %= weights_[c];
    }
    return counts;
  }

 private:
  std::vector<std::int64_t> weights_;
  std::int64_t size_ = 1;
};

// What one node takes: every vector of counts that was reached.
struct Front {
  std::map<std::int64_t, std::vector<Packing>> packings;  // by number, at least one each
  std::vector<Counts> most;                               // that no other one contains
};

bool Contains(const Counts& more, const Counts& less) {
  return std::ranges::equal(more, less, [](int a, int b) { return a >= b; });
}

// But for the names of the GPUs.
bool SamePlaces(const GpuPlaces& a, const GpuPlaces& b) {
  const auto members = [](const GpuPlaces& places) {
    return std::tuple(places.count, places.foreign, places.gpus, places.memory_mib, places.sharing,
                      places.uuids.size());
  };
  return members(a) == members(b);
}

// Whether a search finds the same on both, but for the names.
bool Interchangeable(const Node& a, const Node& b) {
  if (a.free_cpu_milli() != b.free_cpu_milli() || a.free_memory_bytes() != b.free_memory_bytes() ||
      a.free_ephemeral_bytes() != b.free_ephemeral_bytes() ||
      !std::ranges::equal(a.gpus(), b.gpus()) || a.closed() != b.closed() ||
      a.free_places() != b.free_places() || !std::ranges::equal(a.places_on(), b.places_on()) ||
      a.claimed() != b.claimed() || a.with_mode() > 0 || b.with_mode() > 0) {
    return false;
  }
  const NodeSpec &x = a.spec(), &y = b.spec();
  const bool same_gpus = std::ranges::equal(x.gpus, y.gpus, [](const auto& g, const auto& h) {
    return g.memory_mib == h.memory_mib && g.healthy == h.healthy && g.most_users == h.most_users &&
           g.capability == h.capability && g.unit_mib == h.unit_mib;
  });
  return same_gpus && x.gpu_model == y.gpu_model && x.gpu_models == y.gpu_models &&
         x.ready == y.ready && x.links == y.links && x.mig == y.mig &&
         SamePlaces(x.places, y.places) && x.missing == y.missing &&
         x.gpu_resource == y.gpu_resource && x.share_agent == y.share_agent &&
         x.agent_serves_all == y.agent_serves_all && x.part_agent == y.part_agent &&
         x.part_agent_ready == y.part_agent_ready && x.carries_out == y.carries_out &&
         x.by_claims == y.by_claims && x.topology_manager == y.topology_manager &&
         x.share_isolation == y.share_isolation && a.mig() == b.mig();
}

class CountSearch {
 public:
  CountSearch(const Snapshot& snapshot, std::span<const GangClass> classes, GangDevices* devices,
              std::span<const NodeIndex> nodes, SearchSteps& steps)
      : snapshot_(snapshot),
        classes_(classes),
        devices_(devices),
        numbering_(classes),
        steps_(steps) {
    for (const GangClass& of : classes) members_ += of.count();
    for (const NodeIndex node : nodes) {
      const bool takes_some =
          std::ranges::any_of(classes, [node](const GangClass& of) { return of.room[node] > 0; });
      if (takes_some) nodes_.push_back(node);
    }
  }

  std::optional<std::vector<CountedPod>> Run(const SearchGoal& goal) {
    const auto states = static_cast<std::size_t>(numbering_.size());
    if (numbering_.size() > Numbering::kMost ||
        numbering_.size() * static_cast<std::int64_t>(nodes_.size()) > steps_.left) {
      steps_.ran_out = true;
      return std::nullopt;
    }
    std::vector<char> reached(states, 0);
    reached[0] = 1;
    std::size_t used = 0;
    for (; used < nodes_.size() && reached[states - 1] == 0; ++used) {
      const Front* const front = FrontOf(nodes_[used]);
      if (front == nullptr || !Extend(*front, reached)) return std::nullopt;
    }
    const std::int64_t best = Best(reached, goal);
    if (best < 0) return std::nullopt;
    return PodsOf(best, used);
  }

 private:
  // Whether the steps sufficed.
  bool Spend(std::int64_t steps) {
    steps_.left -= steps;
    if (steps_.left < 0) steps_.ran_out = true;
    return steps_.left >= 0;
  }

  [[nodiscard]] int MostOf(std::size_t c, NodeIndex node) const {
    return static_cast<int>(std::min<std::int64_t>(classes_[c].room[node], classes_[c].count()));
  }

  // nullptr: the steps ran out.
  const Front* FrontOf(NodeIndex index) {
    const Node& node = snapshot_.node(index);
    Counts most(classes_.size());
    for (std::size_t c = 0; c < most.size(); ++c) most[c] = MostOf(c, index);
    for (const auto& known : fronts_) {
      if (known->most != most || !Interchangeable(known->node, node)) continue;
      const auto has_same = [&](const GangClass& of) {
        return HaveSameOthers(known->node, node, *of.pod, members_);
      };
      if (!std::ranges::all_of(classes_, has_same)) continue;
      if (devices_ != nullptr && !devices_->Alike(known->index, index)) continue;
      front_of_.push_back(&known->front);
      return front_of_.back();
    }
    auto known = std::make_unique<Known>(Known{index, node, most, {}});
    if (!Fill(index, most, known->front)) return nullptr;
    fronts_.push_back(std::move(known));
    front_of_.push_back(&fronts_.back()->front);
    return front_of_.back();
  }

  // Vectors in the order of their sums, each from those with one pod less.
  bool Fill(NodeIndex index, const Counts& most, Front& front) {
    front.packings[0].push_back({snapshot_.node(index), {}});
    std::vector<std::int64_t> layer = {0};
    while (!layer.empty()) {
      std::vector<std::int64_t> next;
      for (const std::int64_t number : layer) {
        Counts counts = numbering_.CountsOf(number);
        for (std::size_t c = 0; c < counts.size(); ++c) {
          if (counts[c] == most[c]) continue;
          ++counts[c];
          const std::int64_t target = numbering_.Of(counts);
          const bool has_devices = HasDevices(index, counts);
          --counts[c];
          if (!has_devices) continue;
          const std::size_t had = CountOf(front, target);
          if (!AddOne(front.packings[number], c, front, target)) return false;
          if (had == 0 && CountOf(front, target) > 0) next.push_back(target);
        }
      }
      std::ranges::sort(next);
      layer = std::move(next);
    }
    for (auto at = front.packings.rbegin(); at != front.packings.rend(); ++at) {
      const Counts counts = numbering_.CountsOf(at->first);
      if (std::ranges::none_of(front.most, [&](const Counts& c) { return Contains(c, counts); })) {
        front.most.push_back(counts);
      }
    }
    return true;
  }

  static std::size_t CountOf(const Front& front, std::int64_t number) {
    const auto at = front.packings.find(number);
    return at == front.packings.end() ? 0 : at->second.size();
  }

  [[nodiscard]] bool HasDevices(NodeIndex node, const Counts& counts) const {
    if (devices_ == nullptr) return true;
    std::vector<int> members(devices_->kinds(), 0);
    for (std::size_t c = 0; c < counts.size(); ++c) {
      if (classes_[c].claims == kNoClaims) continue;
      members[static_cast<std::size_t>(classes_[c].claims)] += counts[c];
    }
    return devices_->Has(node, members);
  }

  // One pod more of a class, on every packing, in every way.
  bool AddOne(const std::vector<Packing>& from, std::size_t c, Front& front, std::int64_t target) {
    const PodRequest& pod = *classes_[c].pod;
    std::vector<Packing> found;
    if (const auto at = front.packings.find(target); at != front.packings.end()) {
      found = std::move(at->second);
    }
    for (const Packing& packing : from) {
      if (found.size() == kStatesKept) break;
      if (!Spend(kStepsPerTry)) return false;
      if (FirstObjection(packing.node, pod.shape) != Reason::kFits) continue;
      if (!LackOf(packing.node, pod).empty()) continue;
      auto choices = DeviceChoices(packing.node, pod.shape, DeviceRule::kTightest);
      for (const DeviceChoice& other :
           DeviceChoices(packing.node, pod.shape, DeviceRule::kBestScore)) {
        if (other != choices.front()) choices.push_back(other);
      }
      for (const DeviceChoice& choice : choices) {
        if (found.size() < kStatesKept) Keep(packing, c, choice, found);
      }
    }
    if (!found.empty()) front.packings[target] = std::move(found);
    return true;
  }

  void Keep(const Packing& packing, std::size_t c, const DeviceChoice& choice,
            std::vector<Packing>& found) {
    Packing more = packing;
    auto record = std::make_shared<PodRecord>();
    record->pod = *classes_[c].pod;
    record->pod.id.uid += "/" + std::to_string(c) + "/" + std::to_string(more.pods.size());
    record->placement = PlacementFor(more.node, record->pod.shape, choice);
    if (!more.node.CanTake(record->placement)) return;
    more.node.Put(std::move(record));
    more.pods.emplace_back(c, choice);
    const bool is_new = std::ranges::none_of(
        found, [&](const Packing& other) { return Interchangeable(other.node, more.node); });
    if (is_new) found.push_back(std::move(more));
  }

  // From every state that is reached, with the most that the node takes.
  bool Extend(const Front& front, std::vector<char>& reached) {
    std::vector<std::int32_t> before(reached.size(), kNotReached);
    for (std::size_t state = 0; state < reached.size(); ++state) {
      if (reached[state] == 0) continue;
      before[state] = static_cast<std::int32_t>(state);  // nothing goes to this node
    }
    for (std::size_t state = 0; state < reached.size(); ++state) {
      if (reached[state] == 0) continue;
      if (!Spend(static_cast<std::int64_t>(front.most.size()))) return false;
      const Counts at = numbering_.CountsOf(static_cast<std::int64_t>(state));
      for (const Counts& most : front.most) {
        Counts then = at;
        for (std::size_t c = 0; c < then.size(); ++c) {
          then[c] = std::min(then[c] + most[c], static_cast<int>(classes_[c].count()));
        }
        const auto target = static_cast<std::size_t>(numbering_.Of(then));
        if (before[target] == kNotReached) before[target] = static_cast<std::int32_t>(state);
      }
    }
    for (std::size_t state = 0; state < reached.size(); ++state) {
      reached[state] = before[state] == kNotReached ? 0 : 1;
    }
    before_.push_back(std::move(before));
    return true;
  }

  // The state with the most pods, the first of them; -1: none meets the goal.
  [[nodiscard]] std::int64_t Best(const std::vector<char>& reached, const SearchGoal& goal) const {
    std::int64_t best = -1, most = goal.minimum - 1;
    for (std::size_t state = 0; state < reached.size(); ++state) {
      if (reached[state] == 0) continue;
      const Counts counts = numbering_.CountsOf(static_cast<std::int64_t>(state));
      const std::int64_t pods = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
      if (pods <= most || !MeetsRoles(goal.roles, counts)) continue;
      most = pods;
      best = static_cast<std::int64_t>(state);
    }
    return best;
  }

  // Empty: a part of what a node takes was not found by itself.
  [[nodiscard]] std::optional<std::vector<CountedPod>> PodsOf(std::int64_t state,
                                                              std::size_t used) const {
    std::vector<CountedPod> pods;
    for (std::size_t i = used; i-- > 0;) {
      const std::int64_t before = before_[i][static_cast<std::size_t>(state)];
      const auto packings = front_of_[i]->packings.find(state - before);
      if (packings == front_of_[i]->packings.end()) return std::nullopt;
      for (const auto& [c, choice] : packings->second.front().pods)
        pods.push_back({c, nodes_[i], choice});
      state = before;
    }
    return pods;
  }

  static constexpr std::int32_t kNotReached = -1;
  struct Known {
    NodeIndex index;
    Node node;
    Counts most;
    Front front;
  };

  const Snapshot& snapshot_;
  const std::span<const GangClass> classes_;
  GangDevices* const devices_;
  const Numbering numbering_;
  std::int64_t members_ = 0;
  SearchSteps& steps_;
  std::vector<NodeIndex> nodes_;
  std::vector<std::unique_ptr<Known>> fronts_;     // of distinct nodes
  std::vector<const Front*> front_of_;             // [position in nodes_]
  std::vector<std::vector<std::int32_t>> before_;  // the same: [state] the state without the node
};

}  // namespace

std::vector<RoleNeed> NeedsOf(const GangAsk& ask, std::span<const GangClass> classes) {
  std::vector<RoleNeed> needs;
  for (const GangRole& role : ask.roles) {
    RoleNeed need{.classes = {}, .members = role.minimum};
    for (const GangMember& member : ask.members) {
      if (member.fixed != kNoNode && member.pod.role == role.name) --need.members;
    }
    for (std::size_t c = 0; c < classes.size(); ++c) {
      if (classes[c].pod->role == role.name) need.classes.push_back(c);
    }
    if (need.members > 0) needs.push_back(std::move(need));
  }
  return needs;
}

std::vector<std::size_t> ByRank(std::span<const GangMember> members) {
  std::vector<std::size_t> order(members.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    return std::tuple<int, std::string_view>(members[i].rank, members[i].pod.id.uid);
  });
  return order;
}

std::vector<GangClass> ClassesOf(const std::shared_ptr<const Snapshot>& snapshot, GangRoom& room,
                                 const GangAsk& ask, std::span<const std::size_t> by_rank) {
  const std::vector<GangMember>& members = ask.members;
  std::vector<GangClass> classes;
  for (const std::size_t i : by_rank) {
    if (members[i].fixed != kNoNode) continue;
    auto alike = std::ranges::find_if(classes, [&](const GangClass& other) {
      const GangMember& first = members[other.members.front()];
      return SamePodKind(first.pod, members[i].pod) && first.excluded == members[i].excluded &&
             first.outside == members[i].outside && first.claims == members[i].claims &&
             (ask.roles.empty() || first.pod.role == members[i].pod.role);
    });
    if (alike == classes.end()) {
      alike =
          classes.insert(classes.end(), GangClass{&members[i].pod, {}, {}, 0, members[i].claims});
      alike->milli = MilliOf(members[i].pod.shape);
      FindRoom(snapshot, room, ask, members[i], *alike);
    }
    alike->members.push_back(i);
  }
  // Ties stay in the order of the lowest ranks.
  std::ranges::stable_sort(classes, {}, [&](const GangClass& of) {
    const RequestShape& shape = of.shape();
    const auto nodes = std::ranges::count_if(of.room, [](int pods) { return pods > 0; });
    return std::tuple(-of.milli, of.claims == kNoClaims, !shape.links.limits(),
                      shape.models.empty(), -shape.cpu_milli, nodes);
  });
  return classes;
}

std::optional<std::vector<CountedPod>> SearchCounts(const Snapshot& snapshot,
                                                    std::span<const GangClass> classes,
                                                    GangDevices* devices,
                                                    std::span<const NodeIndex> nodes,
                                                    const SearchGoal& goal, SearchSteps& steps) {
  return CountSearch(snapshot, classes, devices, nodes, steps).Run(goal);
}

}  // namespace berth
