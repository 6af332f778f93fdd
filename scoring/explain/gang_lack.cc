// SPDX-License-Identifier: Apache-2.0
//
// The worst comes first. Each step looks at all nodes once.
#include "scoring/explain/gang_lack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/node_access.h"
#include "scoring/explain/node_report.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/registry.h"

namespace berth {
namespace {

// What a node has against a pod.
struct Refusal {
  Reason reason = Reason::kFits;
  std::string lacks = {};  // where that is kFits: of what it has too little, as LackOf
  bool never = false;      // as long as the node is what it is
  [[nodiscard]] bool none() const { return reason == Reason::kFits && lacks.empty(); }
  [[nodiscard]] bool of_gpus() const {
    return reason == Reason::kGpusBusy || reason == Reason::kGpusHeld;
  }
  friend auto operator<=>(const Refusal&, const Refusal&) = default;
};
using Refusals = std::map<Refusal, std::int64_t>;  // nodes

bool IsNever(Reason reason) {
  constexpr std::array kNever = {
      Reason::kNoGpu,           Reason::kOtherResource, Reason::kGpusForeign,
      Reason::kGpuTooSmall,     Reason::kModelMismatch, Reason::kTraitMissing,
      Reason::kTraitForbidden,  Reason::kGpuMismatch,   Reason::kTooFewGpus,
      Reason::kNodeNotSelected, Reason::kTooFewCpus,    Reason::kTooLittleMemory};
  return std::ranges::find(kNever, reason) != kNever.end();
}

// What no toleration and nobody's end mends comes first.
Refusal RefusalOf(const Node& node, const PodRequest& pod) {
  const NodeSpec& spec = node.spec();
  const NodeConstraints* const wants = pod.constraints.get();
  if (wants != nullptr && wants->selects() && !SelectsNode(*wants, spec.name, spec.labels)) {
    return {Reason::kNodeNotSelected, "", true};
  }
  const Reason devices = FirstObjection(node, pod.shape);
  if (IsNever(devices)) {
    const bool may_heal = devices == Reason::kTooFewGpus &&  // a GPU is sick
                          std::ssize(node.gpus()) >= pod.shape.gpu_count() &&
                          FirstObjection(AtItsBest(node), pod.shape) != Reason::kTooFewGpus;
    return {devices, "", !may_heal};
  }
  if (const Reason access = Admits(spec, pod); access != Reason::kFits) {
    return {FirstInOrder(node, pod, access)};
  }
  if (devices != Reason::kFits) return {devices};
  std::string lacks = LackOf(node, pod);
  const bool never = !lacks.empty() && !LackOf(AtItsBest(node), pod).empty();
  return {Reason::kFits, std::move(lacks), never};
}

// Members that are alike.
struct Kind {
  const PodRequest* pod = nullptr;
  std::int64_t pods = 0;
  std::int64_t never = 0;  // nodes
  bool fits = false;       // some node, now
  Refusals nodes = {};     // of those that do not take it now
  Refusals filled = {};    // of those that do, until others of its gang are there
  std::int64_t held = 0;   // of either: nodes whose GPUs are not idle
  [[nodiscard]] const std::string& name() const { return pod->id.name; }
  [[nodiscard]] int gpus() const { return pod->shape.gpu_count(); }
};

// What most nodes say; nullptr: none says any.
const Refusals::value_type* MostIn(const Refusals& nodes) {
  const auto most = std::ranges::max_element(nodes, {}, &Refusals::value_type::second);
  return most == nodes.end() ? nullptr : &*most;
}

const Refusals::value_type* MostIn(const Kind& kind, bool never) {
  const Refusals::value_type* most = nullptr;
  for (const auto& of : kind.nodes) {
    if (of.first.never == never && (most == nullptr || of.second > most->second)) most = &of;
  }
  return most;
}

// "3 nodes have taint gpu=present:NoSchedule", of several taints the one that most of them have.
std::string TextOf(const Snapshot& snapshot, const PodRequest& pod,
                   const Refusals::value_type& said) {
  const auto& [refusal, nodes] = said;
  const std::string count = CountText(nodes, "node");
  if (refusal.lacks == "pods") return count + (nodes == 1 ? " takes" : " take") + " no more pods";
  if (!refusal.lacks.empty()) return count + (nodes == 1 ? " lacks " : " lack ") + refusal.lacks;
  std::map<std::string, std::int64_t> taints;
  // Those that Kubernetes takes away by itself, where there are no others.
  for (const bool passing : {false, true}) {
    const bool is_of_taints = refusal.reason == Reason::kTaintNotTolerated && taints.empty();
    for (NodeIndex i = 0; i < snapshot.size() && is_of_taints; ++i) {
      if (RefusalOf(snapshot.node(i), pod) != refusal) continue;
      for (const Taint& taint : snapshot.node(i).spec().taints) {
        const bool counts = PassesByItself(taint) == passing;
        if (counts && !Tolerates(TolerationsOf(pod), taint)) ++taints[berth::TextOf(taint)];
      }
    }
  }
  const auto most = std::ranges::max_element(taints, {}, [](const auto& of) { return of.second; });
  return most == taints.end() ? berth::TextOf(refusal.reason, nodes)
                              : TaintedText(most->second, most->first);
}

struct Ask {
  std::vector<const PodRequest*> members = {};
  std::int64_t minimum = 1;
};

class Lack {
 public:
  // level: the members have to be in one of its domains. pods: what they are, in words.
  Lack(const Snapshot& snapshot, const DomainTree& tree, const TopologyLevels& levels, Ask ask,
       std::optional<std::size_t> level, std::string pods = "its pods")
      : snapshot_(snapshot), tree_(tree), ask_(std::move(ask)), pods_(std::move(pods)) {
    if (level && *level < tree.levels()) {
      level_ = level;
      level_name_ = levels[*level].name;
    }
    for (const PodRequest* const pod : ask_.members) {
      const auto is_like = [pod](const Kind& kind) { return SamePodKind(*kind.pod, *pod); };
      auto kind = std::ranges::find_if(kinds_, is_like);
      if (kind == kinds_.end()) kind = kinds_.insert(kind, Kind{pod});
      ++kind->pods;
    }
    must_all_ = std::ssize(ask_.members) <= ask_.minimum;
  }

  // What no end of other pods mends; no text: nothing is.
  GangLack FindForGood() {
    std::vector<Sum> sums = Sums();
    for (NodeIndex i = 0; i < snapshot_.size(); ++i) Look(i, sums);
    return ForGood(sums);
  }

  GangLack Find() {
    std::vector<Sum> sums = Sums();
    for (NodeIndex i = 0; i < snapshot_.size(); ++i) Look(i, sums);
    if (GangLack never = ForGood(sums); never.for_good) return never;
    // Where all have to start, the first that no node takes is what is missing. Of members that
    // are alike the number says it where they lack GPUs on some node: the text names who holds
    // them.
    for (const Kind& kind : kinds_) {
      const Refusals::value_type* const most = berth::MostIn(kind, false);
      if (kind.fits || most == nullptr || !must_all_) continue;
      const auto is_of_gpus = [](const auto& of) { return of.first.of_gpus(); };
      if (kinds_.size() == 1 && std::ranges::any_of(kind.nodes, is_of_gpus)) continue;
      return {kind.name() + " fits no node now: " + TextOf(snapshot_, *kind.pod, *most),
              kind.name()};
    }
    for (const Sum& sum : sums) {
      const Refusals::value_type* const most = berth::MostIn(sum.closed);
      if (sum.needed <= MostIn(sum.open) || most == nullptr) continue;
      return {Asked(sum) + ", and the nodes open to them " + (level_ ? "there " : "") + "have " +
              Has(MostIn(sum.open)) + "; " + TextOf(snapshot_, *sum.first, *most)};
    }
    return RequiresParts(kinds_.front().pod->gang) ? GangLack() : LeftOver();
  }

 private:
  // The GPUs that some of the members ask for together, and the nodes of one domain have.
  using ByDomain = std::map<TopologyDomain, std::int64_t>;
  struct Sum {
    const PodRequest* first = nullptr;
    std::vector<std::size_t> kinds;
    std::int64_t needed = 0, each = 0;  // each asks for a multiple of that
    ByDomain there = {}, open = {};     // open: to one of the kinds now
    Refusals closed = {};               // why others are not
  };
  [[nodiscard]] GangLack ForGood(const std::vector<Sum>& sums) const {
    std::int64_t accepted = 0;  // members
    const auto is_never = [this](const Kind& kind) {
      return kind.never > 0 && std::cmp_equal(kind.never, snapshot_.size());
    };
    for (const Kind& kind : kinds_) accepted += is_never(kind) ? 0 : kind.pods;
    for (const Kind& kind : kinds_) {
      if (accepted < ask_.minimum && is_never(kind)) return NeverTaken(kind);
    }
    if (level_ && !HasDomains()) {
      return {"never on these nodes: " + pods_ + " have to be in one " + level_name_ +
                  ", and no node has a label of that level",
              "", true};
    }
    for (const Sum& sum : sums) {
      if (sum.needed > MostIn(sum.there)) return TooFewGpus(sum);
    }
    return {};
  }

  static std::int64_t MostIn(const ByDomain& gpus) {
    std::int64_t most = 0;
    for (const auto& [domain, number] : gpus) most = std::max(most, number);
    return most;
  }

  // Of all kinds with GPUs, and of each alone. None: GPUs are not all that counts.
  std::vector<Sum> Sums() {
    Sum all;
    std::vector<Sum> sums;
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      const Kind& kind = kinds_[k];
      if (!kind.pod->shape.wants_gpu()) continue;
      if (!std::holds_alternative<WholeGpus>(kind.pod->shape.gpus)) return {};
      if (all.first == nullptr) all.first = kind.pod;
      all.kinds.push_back(k);
      all.each = std::gcd(all.each, kind.gpus());
      if (must_all_) sums.push_back({kind.pod, {k}, kind.pods * kind.gpus(), kind.gpus()});
    }
    if (all.each == 0) return {};
    std::vector<std::int64_t> asks;
    for (const auto& pod : ask_.members) asks.push_back(pod->shape.gpu_count());
    std::ranges::sort(asks);
    const auto end = asks.begin() + std::min<std::ptrdiff_t>(std::ssize(asks), ask_.minimum);
    all.needed = std::accumulate(asks.begin(), end, std::int64_t{0});
    several_ = all.kinds.size() > 1;
    if (!several_) sums.clear();
    sums.insert(sums.begin(), std::move(all));
    return sums;
  }

  void Look(NodeIndex i, std::vector<Sum>& sums) {
    const Node& node = snapshot_.node(i);
    std::vector<Refusal> said;
    for (Kind& kind : kinds_) {
      const Refusal& refusal = said.emplace_back(RefusalOf(node, *kind.pod));
      kind.never += refusal.never ? 1 : 0;
      refusal.none() ? void(kind.fits = true) : void(++kind.nodes[refusal]);
    }
    const TopologyDomain domain = level_ ? tree_.DomainOf(i, *level_) : DomainTree::kCluster;
    if (level_ && !tree_.named(domain)) return;
    GpuMask own = 0;  // shares may be on one
    for (const auto& pod : node.pods()) {
      const bool is_own = pod->pod.gang.id == kinds_.front().pod->gang.id;
      if (!is_own || pod->leaving || pod->state == PodState::kPlanned) continue;
      own |= GpusAmong(pod->placement.grants, node.gpus().size());
      own_ = true;
    }
    const std::int64_t gpus = std::ssize(node.gpus()) - std::popcount(own);
    for (Sum& sum : sums) {
      const auto may = [&said](std::size_t k) { return !said[k].never; };
      if (std::ranges::none_of(sum.kinds, may)) continue;
      // Of parts there may be any number.
      const std::int64_t has = node.spec().gives_parts() ? sum.needed : gpus / sum.each * sum.each;
      sum.there[domain] += has;
      const auto takes = [&said](std::size_t k) {
        return VerdictOf(said[k].reason) != Verdict::kUnresolvable;
      };
      if (std::ranges::any_of(sum.kinds, takes)) {
        sum.open[domain] += has;
      } else {
        ++sum.closed[said[*std::ranges::find_if(sum.kinds, may)]];
      }
    }
  }

  [[nodiscard]] bool HasDomains() const {
    const auto [begin, end] = tree_.Level(*level_);
    for (TopologyDomain domain = begin; domain < end; ++domain) {
      if (tree_.named(domain)) return true;
    }
    return false;
  }

  [[nodiscard]] GangLack NeverTaken(const Kind& kind) const {
    const std::vector<NodeIndex> all = UpTo<NodeIndex>(snapshot_.size());
    std::string why = NeverInPool(snapshot_, {.pod = *kind.pod, .candidates = all});
    if (why.empty()) why = TextOf(snapshot_, *kind.pod, *berth::MostIn(kind, true));
    return {"never while no node accepts " + kind.name() + ": " + why, kind.name(), true};
  }

  [[nodiscard]] std::string Asked(const Sum& sum) const {
    const Kind& kind = kinds_[sum.kinds.front()];
    const std::vector<std::string>& models = sum.first->shape.models;
    const bool one = sum.kinds.size() == 1, is_part = one && several_;
    return (!is_part         ? pods_ + " ask for "
            : kind.pods == 1 ? kind.name() + " asks for "
                             : "its pods like " + kind.name() + " ask for ") +
           std::to_string(sum.needed) + " GPUs" +
           (models.empty() || !one ? "" : " of " + Join(models, " or ")) +
           (level_ ? " in one " + level_name_ : "");
  }
  [[nodiscard]] std::string Has(std::int64_t gpus) const {
    return std::to_string(gpus) + (own_ ? " beside its own" : "");
  }

  [[nodiscard]] GangLack TooFewGpus(const Sum& sum) const {
    const Kind& kind = kinds_[sum.kinds.front()];
    if (MostIn(sum.there) == 0 && berth::MostIn(kind, true) != nullptr) return NeverTaken(kind);
    const std::string pool = sum.kinds.size() == 1 ? PoolOf(*sum.first) : "";
    std::string text =
        "never on these nodes: " + Asked(sum) + ", and " +
        (level_ ? "the largest has " : "the nodes" + pool + " that they accept have ") +
        Has(MostIn(sum.there));
    for (const auto& of : kind.nodes) {
      if (of.first.never && !of.first.lacks.empty()) {
        AddFact(text, TextOf(snapshot_, *sum.first, of));
      }
    }
    return {std::move(text), "", true};
  }

  // The members put on the nodes one after the other, the largest first, in the domain that takes
  // most of them: who has no place there.
  [[nodiscard]] GangLack LeftOver() const {
    std::map<TopologyDomain, std::vector<NodeIndex>> domains;
    for (NodeIndex i = 0; i < snapshot_.size(); ++i) {
      const TopologyDomain domain = level_ ? tree_.DomainOf(i, *level_) : DomainTree::kCluster;
      if (!level_ || tree_.named(domain)) domains[domain].push_back(i);
    }
    std::vector<Kind> in_turn = kinds_;
    std::ranges::stable_sort(in_turn, {}, [](const Kind& kind) {
      return std::pair(-kind.gpus(), -kind.pod->shape.cpu_milli);
    });
    for (Kind& kind : in_turn) kind.nodes.clear();
    std::int64_t least = std::ssize(ask_.members) + 1;
    std::vector<Kind> best;
    for (const auto& [domain, nodes] : domains) {
      std::vector<Kind> left = in_turn;
      const auto is_placed = [](const Kind& kind) { return kind.pods == 0; };
      for (const NodeIndex node : nodes) {
        if (std::ranges::all_of(left, is_placed)) break;
        Fill(snapshot_.node(node), left);
      }
      std::int64_t over = 0;
      for (const Kind& kind : left) over += kind.pods;
      if (over < least) best = std::move(left);
      least = std::min(least, over);
    }
    if (std::ssize(ask_.members) - least >= ask_.minimum) return {};
    for (const Kind& kind : best) {
      // What has to do with the others says more than a taint of many nodes.
      const bool beside = !kind.filled.empty();
      const Refusals::value_type* const most = berth::MostIn(beside ? kind.filled : kind.nodes);
      if (kind.pods == 0 || most == nullptr) continue;
      // Of members that are alike the number says it, unless more than GPUs runs out for them.
      const bool runs_out = beside && !most->first.of_gpus();
      if (kinds_.size() == 1 && kind.held > (runs_out ? most->second : 0)) break;
      return {kind.name() + " fits no node " + (kind.fits ? "beside the others: " : "now: ") +
                  TextOf(snapshot_, *kind.pod, *most),
              kind.name()};
    }
    return {};
  }

  // What the node has against one more, but for what it is.
  static void Fill(const Node& idle, std::vector<Kind>& left) {
    Node node = idle;
    for (Kind& kind : left) {
      Refusal now = RefusalOf(node, *kind.pod);
      const bool is_other = now.never && now.lacks.empty();
      for (; kind.pods > 0 && now.none(); now = RefusalOf(node, *kind.pod), --kind.pods) {
        const RequestShape& shape = kind.pod->shape;
        const auto choices = DeviceChoices(node, shape, DeviceRule::kTightest);
        if (choices.empty()) break;
        PodRequest pod = *kind.pod;
        pod.id.uid = std::to_string(node.pods().size());  // as many as there are
        PodRecord record{pod, PlacementFor(node, shape, choices.front())};
        if (!node.CanTake(record.placement)) break;
        node.Put(std::make_shared<const PodRecord>(std::move(record)));
      }
      if (now.none() || is_other) continue;
      const bool was_open = RefusalOf(idle, *kind.pod).none();
      // Its own members have these: nobody is to give them up.
      const bool was_idle = std::ranges::all_of(idle.gpus(), &GpuFree::idle);
      if (left.size() == 1 && was_open && was_idle && now.of_gpus()) continue;
      kind.held += now.of_gpus() ? 1 : 0;
      was_open ? ++kind.filled[now] : ++kind.nodes[now];
    }
  }

  const Snapshot& snapshot_;
  const DomainTree& tree_;
  const Ask ask_;
  const std::string pods_;
  std::optional<std::size_t> level_;  // the gang has to be in one of its domains
  std::string level_name_;
  std::vector<Kind> kinds_;
  bool must_all_ = false;
  bool several_ = false;  // kinds ask for GPUs
  bool own_ = false;      // others of the gang have GPUs already
};

}  // namespace

GangLack WhyNoPlan(const Snapshot& snapshot, const DomainTree& tree, const TopologyLevels& levels,
                   std::span<const std::shared_ptr<const PodRequest>> members, std::int64_t minimum,
                   std::span<const GangRole> roles, bool for_good_only) {
  const auto is_refused = [](const auto& pod) { return !pod->refusal.empty(); };
  const auto refused = std::ranges::find_if(members, is_refused);
  if (std::ssize(members) - std::ranges::count_if(members, is_refused) < minimum) {
    const std::string& name = (*refused)->id.name;
    return {name + " must be changed: " + (*refused)->refusal, name, true};
  }
  const auto ask_of = [&](const GangPart* part) {
    Ask ask{.minimum = part == nullptr ? minimum : 0};
    for (const auto& pod : members) {
      if (part == nullptr || part->Has(pod->role)) ask.members.push_back(pod.get());
    }
    for (const GangRole& role : roles) {
      if (part != nullptr && part->Has(role.name)) ask.minimum += role.minimum;
    }
    if (minimum >= std::ssize(members)) ask.minimum = std::ssize(ask.members);
    return ask;
  };
  // Parts have domains of their own.
  const PodRequest& first = *members.front();
  const bool has_parts = RequiresParts(first.gang);
  for (const GangPart& part : first.gang.parts) {
    Ask ask = ask_of(&part);
    if (!has_parts || part.preferred || ask.minimum < 1) continue;  // none of it has to start
    if (std::ssize(ask.members) < ask.minimum) continue;
    const std::string pods = part.roles.empty() ? "its pods" : "the pods of " + GroupsText(part);
    GangLack never = Lack(snapshot, tree, levels, std::move(ask), part.level, pods).FindForGood();
    if (never.for_good) return never;
  }
  const auto level = has_parts ? std::nullopt : first.domain.required;
  Lack whole(snapshot, tree, levels, ask_of(nullptr), level);
  return for_good_only ? whole.FindForGood() : whole.Find();
}

}  // namespace berth
