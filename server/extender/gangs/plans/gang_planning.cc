// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/plans/gang_planning.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "scoring/earmarks/earmarks.h"
#include "scoring/explain/node_access.h"
#include "scoring/explain/node_report.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_checked.h"
#include "scoring/gangs/gang_ranks.h"
#include "scoring/groups/group_domains.h"
#include "scoring/registry.h"

namespace berth {

bool PlanHolds(const Snapshot& snapshot, const PodRequest& pod, const std::string& node) {
  const NodeIndex index = snapshot.names().Find(node);
  if (index == kNoNode) return false;
  const Node& now = snapshot.node(index);
  const PodRecord* const record = now.FindPod(pod.id.uid);
  if (record == nullptr || record->state != PodState::kPlanned) return false;
  if (Admits(now.spec(), pod) != Reason::kFits) return false;
  Node without = now;
  without.Remove(pod.id.uid);
  return without.CanTake(record->placement).has_value();
}

namespace {

// Whether the node takes such a pod at no time, as long as it is what it is.
bool IsNever(Reason reason) {
  constexpr std::array kNever = {
      Reason::kNoGpu,           Reason::kOtherResource, Reason::kGpusForeign,
      Reason::kGpuTooSmall,     Reason::kModelMismatch, Reason::kTraitMissing,
      Reason::kTraitForbidden,  Reason::kGpuMismatch,   Reason::kTooFewGpus,
      Reason::kNodeNotSelected, Reason::kTooFewCpus,    Reason::kTooLittleMemory};
  return std::ranges::find(kNever, reason) != kNever.end();
}

// What so many nodes have against the pod: "3 nodes have taint gpu=present:NoSchedule", of several
// taints the one that most of them have.
std::string TextOf(const Snapshot& snapshot, const PodRequest& pod, Reason reason,
                   std::int64_t nodes) {
  if (reason != Reason::kTaintNotTolerated) return berth::TextOf(reason, nodes);
  std::map<std::string, std::int64_t> taints;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeSpec& spec = snapshot.node(i).spec();
    if (Admits(spec, pod) != reason) continue;
    for (const Taint& taint : spec.taints) {
      if (!PassesByItself(taint) && !Tolerates(TolerationsOf(pod), taint)) {
        ++taints[berth::TextOf(taint)];
      }
    }
  }
  const auto most = std::ranges::max_element(taints, {}, [](const auto& of) { return of.second; });
  if (most == taints.end()) return berth::TextOf(reason, nodes);
  return TaintedText(most->second, most->first);
}

}  // namespace

GangLack WhyNoPlan(const Snapshot& snapshot, const DomainTree& tree, const TopologyLevels& levels,
                   const GangToPlan& ask) {
  const auto is_refused = [](const auto& pod) { return !pod->refusal.empty(); };
  const auto refused = std::ranges::find_if(ask.members, is_refused);
  if (std::ssize(ask.members) - std::ranges::count_if(ask.members, is_refused) < ask.minimum) {
    const std::string& name = (*refused)->id.name;
    return {name + " must be changed: " + (*refused)->refusal, name, true};
  }
  const std::optional<std::size_t> level = ask.members.front()->domain.required;
  // Parts have domains of their own, which the plan names.
  const bool in_domain =
      level && *level < tree.levels() && !RequiresParts(ask.members.front()->gang);
  const std::string name_of_level = in_domain ? levels[*level].name : "";
  struct Kind {
    const PodRequest* pod = nullptr;
    std::int64_t never = 0;  // nodes
    bool fits = false;       // some node, now
    std::map<Reason, std::int64_t> nodes = {};
  };
  std::vector<Kind> kinds;
  std::vector<std::int64_t> asks;
  bool counts_gpus = true;  // of others GPUs are not all that counts
  for (const auto& pod : ask.members) {
    const auto* const whole = std::get_if<WholeGpus>(&pod->shape.gpus);
    counts_gpus = counts_gpus && whole != nullptr && whole->count > 0;
    if (counts_gpus) asks.push_back(whole->count);
    const auto is_like = [&pod](const Kind& kind) { return SamePodKind(*kind.pod, *pod); };
    if (std::ranges::none_of(kinds, is_like)) kinds.push_back({pod.get()});
  }
  std::ranges::sort(asks);
  asks.resize(std::min(asks.size(), static_cast<std::size_t>(ask.minimum)));
  std::map<TopologyDomain, std::int64_t> gpus_there, gpus_open;  // open: to one of the kinds now
  std::map<Reason, std::int64_t> closed;                         // why others are not
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    bool is_accepted = false, is_open = false;
    Reason closed_for = Reason::kFits;
    for (Kind& kind : kinds) {
      Reason reason = Admits(node.spec(), *kind.pod);
      const Reason devices = FirstObjection(node, kind.pod->shape);
      if (!IsNever(reason) && (reason == Reason::kFits || IsNever(devices))) reason = devices;
      IsNever(reason) ? void(++kind.never) : void(is_accepted = true);
      const bool takes = VerdictOf(reason) != Verdict::kUnresolvable;
      takes ? void(is_open = true) : void(closed_for = IsNever(reason) ? closed_for : reason);
      reason == Reason::kFits ? void(kind.fits = true) : void(++kind.nodes[reason]);
    }
    // Of parts there may be any number.
    counts_gpus = counts_gpus && !(is_accepted && node.spec().gives_parts());
    const TopologyDomain domain = in_domain ? tree.DomainOf(i, *level) : DomainTree::kCluster;
    if (!is_accepted || !counts_gpus || (in_domain && !tree.named(domain))) continue;
    const std::int64_t gpus = std::ssize(node.gpus()) / asks.front() * asks.front();
    gpus_there[domain] += gpus;
    is_open ? void(gpus_open[domain] += gpus) : void(++closed[closed_for]);
  }
  const auto most_of = [](const Kind& kind, bool for_good) {
    std::pair<Reason, std::int64_t> most{Reason::kFits, 0};
    for (const auto& [reason, nodes] : kind.nodes) {
      if (IsNever(reason) == for_good && nodes > most.second) most = {reason, nodes};
    }
    return most;
  };
  std::vector<NodeIndex> all = UpTo<NodeIndex>(snapshot.size());
  for (const Kind& kind : kinds) {
    if (kind.never == 0 || std::cmp_less(kind.never, snapshot.size())) continue;
    std::string why = NeverInPool(snapshot, {.pod = *kind.pod, .candidates = all});
    if (const auto [reason, nodes] = most_of(kind, true); why.empty()) {
      why = berth::TextOf(reason, nodes);
    }
    const std::string& name = kind.pod->id.name;
    return {"never while no node accepts " + name + ": " + why, name, true};
  }
  const std::int64_t needed = std::accumulate(asks.begin(), asks.end(), std::int64_t{0});
  const auto most_in = [](const std::map<TopologyDomain, std::int64_t>& gpus) {
    std::int64_t most = 0;
    for (const auto& [domain, number] : gpus) most = std::max(most, number);
    return most;
  };
  const PodRequest& first = *kinds.front().pod;
  const bool alike = kinds.size() == 1;
  const std::string of =
      first.shape.models.empty() || !alike ? "" : " of " + Join(first.shape.models, " or ");
  const std::string asked = "its pods ask for " + std::to_string(needed) + " GPUs" + of +
                            (in_domain ? " in one " + name_of_level : "");
  if (in_domain) {
    const auto [begin, end] = tree.Level(*level);
    bool some = false;
    for (TopologyDomain domain = begin; domain < end; ++domain) some |= tree.named(domain);
    if (!some) {
      return {"never on these nodes: it has to be in one " + name_of_level +
                  ", and no node has a label of that level",
              "", true};
    }
  }
  const std::int64_t there = most_in(gpus_there), open = most_in(gpus_open);
  if (counts_gpus && needed > there) {
    const std::string where =
        in_domain ? "the largest has "
                  : "the nodes" + (alike ? PoolOf(first) : "") + " that they accept have ";
    return {"never on these nodes: " + asked + ", and " + where + std::to_string(there), "", true};
  }
  // Where all have to start, the first that no node takes is what is missing. Of members that are
  // alike the number says it where they lack GPUs on some node: the text names who holds them.
  for (const Kind& kind : kinds) {
    const auto [reason, nodes] = most_of(kind, false);
    if (kind.fits || nodes == 0 || std::ssize(ask.members) > ask.minimum) continue;
    const bool is_said =
        kind.nodes.contains(Reason::kGpusBusy) || kind.nodes.contains(Reason::kGpusHeld);
    const std::string& name = kind.pod->id.name;
    if (kinds.size() == 1 && is_said) continue;
    return {name + " fits no node now: " + TextOf(snapshot, *kind.pod, reason, nodes), name};
  }
  if (counts_gpus && needed > open && !closed.empty()) {
    const auto most =
        std::ranges::max_element(closed, {}, [](const auto& one) { return one.second; });
    return {asked + ", and the nodes open to them " + (in_domain ? "there " : "") + "have " +
            std::to_string(open) + "; " + TextOf(snapshot, first, most->first, most->second)};
  }
  return {};
}

void GangPlanning::Respect(Reservations kept) {
  const MutexLock lock(mutex_);
  std::swap(kept_, kept);  // what was kept before is freed after the lock
}

GangGround GangPlanning::Ground(bool with_claims) const {
  GangGround ground{.snapshot = state_.Current()};
  if (with_claims && claims_ != nullptr) ground.devices = claims_->offers();
  const MutexLock lock(mutex_);
  ground.kept = kept_;
  return ground;
}

std::vector<NodeIndex> GangPlanning::KeptFrom(const Snapshot& snapshot, const PodRequest& pod,
                                              const Reservations& kept) const {
  std::vector<NodeIndex> nodes;
  const ClaimState claims = claims_ == nullptr ? ClaimState::kNone : claims_->StateOf(pod);
  const bool gets_devices = claims == ClaimState::kOpen || claims == ClaimState::kUnseen;
  const auto keep_out_of = [&](std::string_view name) {
    const NodeIndex node = snapshot.names().Find(name);
    if (node == kNoNode) return;
    if (kept.KeptFor(pod, snapshot, node, gets_devices) != nullptr) nodes.push_back(node);
  };
  const Earmarks& earmarks = kept.earmarks();
  for (const Earmarks::OnNode& on : earmarks.nodes()) {
    keep_out_of(earmarks.snapshot()->names().name(on.node));
  }
  if (kept.nodes() != nullptr) {
    for (const auto& [name, node] : *kept.nodes()) keep_out_of(name);
  }
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool GangPlanning::IsKeptFrom(const PodRequest& pod, const std::string& node) const {
  const GangGround now = Ground(false);
  const NodeIndex index = now.snapshot->names().Find(node);
  return std::ranges::binary_search(KeptFrom(*now.snapshot, pod, now.kept), index);
}

GangAsk GangPlanning::AskOf(const Snapshot& snapshot, const GangToPlan& ask,
                            const Reservations& keeps_off) const {
  GangAsk asked;
  const PodRequest& first = *ask.members.front();
  const PodRequest* alike = nullptr;  // the last one that is kept from these nodes
  std::vector<NodeIndex> kept;
  for (const auto& pod : ask.members) {
    GangMember member{.pod = *pod, .rank = MemberRank(*pod)};
    if (alike == nullptr || alike->shape != pod->shape || alike->claims != pod->claims) {
      kept = KeptFrom(snapshot, *pod, keeps_off);
    }
    alike = pod.get();
    member.excluded = kept;
    if (const auto fixed = ask.fixed.find(pod->id.uid); fixed != ask.fixed.end()) {
      member.fixed = snapshot.names().Find(fixed->second);
    }
    if (const auto excluded = ask.excluded.find(pod->id.uid); excluded != ask.excluded.end()) {
      for (const std::string& name : excluded->second) {
        const NodeIndex index = snapshot.names().Find(name);
        if (index != kNoNode) member.excluded.push_back(index);
      }
    }
    if (ask.asker == pod->id.uid) {
      for (NodeIndex i = 0; i < snapshot.size(); ++i) {
        if (!ask.offered.contains(snapshot.names().name(i))) member.excluded.push_back(i);
      }
    }
    std::ranges::sort(member.excluded);
    asked.members.push_back(std::move(member));
  }
  asked.minimum = ask.minimum;
  asked.roles = ask.roles;
  asked.present = MembersOn(snapshot, first, state_.GangNodes(first.gang.id));
  AskForDomains(first, asked);
  return asked;
}

Result<GangClaims::Needs> GangPlanning::AddDevices(const Snapshot& snapshot, const GangToPlan& of,
                                                   GangAsk& ask) const {
  if (claims_ == nullptr || !of.with_claims) return GangClaims::Needs();
  auto needs = claims_->NeedsOf(of.members, snapshot);
  if (!needs || needs->devices == nullptr) return needs;
  ask.devices = needs->devices.get();
  for (std::size_t i = 0; i < ask.members.size(); ++i) ask.members[i].claims = needs->kinds[i];
  return needs;
}

GangPlanning::Left GangPlanning::LeftOf(const GangToPlan& ask) const {
  const ClusterState::GangContents there = state_.GangPods(ask.members.front()->gang.id);
  std::unordered_map<std::string_view, const PodRecord*> records;
  for (const auto& record : there.pods) records.emplace(record->pod.id.uid, record.get());
  Left left{.now = there.snapshot, .lifted = nullptr, .ask = ask};
  left.ask.members.clear();
  Transaction lifted(there.snapshot);
  for (const auto& pod : ask.members) {
    const auto held = records.find(pod->id.uid);
    const bool has_begun = held != records.end() && held->second->state != PodState::kPlanned;
    if (has_begun) {
      --left.ask.minimum;
      const auto role = std::ranges::find(left.ask.roles, pod->role, &GangRole::name);
      if (role != left.ask.roles.end() && --role->minimum == 0) left.ask.roles.erase(role);
      continue;
    }
    left.ask.members.push_back(pod);
    if (held == records.end()) continue;
    const NodeIndex index = there.snapshot->names().Find(held->second->placement.node);
    if (index != kNoNode) lifted.Take(pod->id.uid, index);
  }
  left.ask.minimum = std::max<std::int64_t>(left.ask.minimum, 1);
  left.lifted = lifted.now();
  return left;
}

GangClearing GangPlanning::PlanAfterEvictions(Engine& engine, const GangToPlan& ask,
                                              const EvictionLimits& limits) {
  GangClearing clearing;
  const Left left = LeftOf(ask);
  if (left.ask.members.empty()) return clearing;
  const std::shared_ptr<const DomainTree> tree = domains_.Of(left.lifted);
  const Reservations kept = Ground(false).kept;
  const auto cleared =
      PlanToClear({left.lifted, *tree, engine, room_}, AskOf(*left.lifted, left.ask, kept),
                  {kept, limits, ask.nominated ? &*ask.nominated : nullptr});
  if (!cleared) return clearing;
  for (const GangPlan::Place& place : cleared->plan.places) {
    const bool fits = cleared->fit_now.contains(place.member);
    (fits ? clearing.beside : clearing.to_clear)
        .emplace(left.ask.members[place.member]->id.uid, place.placement.node);
  }
  return clearing;
}

bool GangPlanning::Keep(Engine& engine, const PodRequest& pod, const std::string& node) {
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  const NodeIndex index = snapshot->names().Find(node);
  if (index == kNoNode || !LackOf(snapshot->node(index), pod).empty()) return false;
  auto placement = engine.PlaceOn(snapshot, pod.shape, index);
  if (!placement) return false;
  const PodPlacement planned{pod, *std::move(placement)};
  return state_.Plan(std::span(&planned, 1)).has_value();
}

tl::expected<NodesByUid, NoGangPlan> GangPlanning::Plan(Engine& engine, const GangToPlan& ask) {
  GangToPlan less = ask;  // than is wished
  if (!ask.wished.empty()) {
    less.fixed.merge(std::exchange(less.wished, {}));
    if (auto nodes = Plan(engine, less)) return nodes;
    less.fixed = ask.fixed;
  } else if (!ask.avoided.empty()) {
    for (const auto& [uid, nodes] : std::exchange(less.avoided, {})) {
      less.excluded[uid].insert(nodes.begin(), nodes.end());
    }
    if (auto nodes = PlanAsFixed(engine, less)) return nodes;
    less.excluded = ask.excluded;
  } else {
    auto nodes = PlanAsFixed(engine, ask);
    if (nodes || ask.asker.empty()) return nodes;
    less.asker.clear();
  }
  return Plan(engine, less);
}

tl::expected<NodesByUid, NoGangPlan> GangPlanning::PlanAsFixed(Engine& engine,
                                                               const GangToPlan& ask) {
  NoGangPlan none;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    none.ground = Ground(ask.with_claims);
    const Left left = LeftOf(ask);
    if (left.ask.members.empty()) return NodesByUid();
    none.ground.snapshot = left.now;
    const auto is_gone = [&names = left.now->names()](const auto& fixed) {
      return names.Find(fixed.second) == kNoNode;
    };
    if (std::ranges::any_of(ask.fixed, is_gone)) break;
    const std::shared_ptr<const DomainTree> tree = domains_.Of(left.now);
    GangAsk asked = AskOf(*left.lifted, left.ask, none.ground.kept);
    const auto needs = AddDevices(*left.lifted, left.ask, asked);
    if (!needs) {
      none.claims_left = needs.error().message;
      break;
    }
    const Planning with{left.lifted, *tree, engine, room_};
    BesideKept check(asked, none.ground.kept.earmarks(), *left.lifted);
    auto plan = PlanChecked(
        asked, [&with](const GangAsk& members) { return PlanGang(with, members); }, check);
    if (!plan) {
      if (needs->devices != nullptr && needs->devices->ran_out()) {
        none.claims_left = "it takes too long to find out which devices suit it";
      }
      none.shortage = plan.error();
      if (none.shortage.part) none.part = PartText(with, domains_.levels(), asked, none.shortage);
      none.domain = DomainName(*left.now, domains_.levels(), *tree, none.shortage.domain);
      break;
    }
    NodesByUid nodes;
    std::vector<PodPlacement> placements;
    for (GangPlan::Place& place : plan->places) {
      const PodRequest& pod = asked.members[place.member].pod;
      nodes.emplace(pod.id.uid, place.placement.node);
      placements.push_back({pod, std::move(place.placement)});
    }
    if (!state_.Plan(placements)) continue;
    std::vector<std::string> left_out;
    for (const auto& pod : ask.members) {
      if (!nodes.contains(pod->id.uid)) left_out.push_back(pod->id.uid);
    }
    state_.Unplan(left_out);
    return nodes;
  }
  return tl::unexpected(std::move(none));
}

}  // namespace berth
