// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/what_if.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/earmarks/earmarks.h"
#include "scoring/explain/gang_lack.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_checked.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/gangs/gang_ranks.h"
#include "scoring/judgement.h"
#include "scoring/victims.h"

namespace berth {
namespace {

// Of both the same is said, if nothing but pods came to the nodes in between: what is free shrinks.
// Where members of a gang are matters to the others.
bool AreAlike(const PodRequest& a, const PodRequest& b) {
  return SameIn<Role::kKind, Role::kTurn>(a, b) && a.domain == b.domain && a.gang.empty() &&
         b.gang.empty();
}

class WhatIfPlanner {
 public:
  WhatIfPlanner(EngineApart& engine, const WhatIfAsk& ask, EditedNodes nodes)
      : ask_(ask),
        engine_(engine),
        transaction_(nodes.snapshot),
        tree_(std::make_shared<const DomainTree>(DomainsOf(*nodes.snapshot, ask.levels))),
        all_(UpTo<NodeIndex>(nodes.snapshot->size())) {
    told_.pods.resize(ask.pods.size());
    if (ask.reservations != nullptr) kept_ = *ask.reservations;
    if (ask.explains) told_.before = SummarizeModels(*nodes.snapshot);
    told_.nodes = std::move(nodes);
    FindGangs();
  }

  Result<WhatIfAnswer> Plan() {
    for (const std::size_t i : InTheirOrder()) {
      if (const char* const why = ask_.stops ? ask_.stops() : nullptr) {
        return Fail(Errc::kUnavailable, why);
      }
      const PodRequest& pod = ask_.pods[i];
      if (!HeldBack(i).empty()) {
        engine_.Arrived(pod, transaction_.now());
        RefuseFor(i, HeldBack(i));
      } else if (!StartsWhole(pod)) {
        engine_.Arrived(pod, transaction_.now());
        PlaceAlone(i);
      } else if (planned_.insert(pod.gang.id).second) {
        PlaceGang(pod.gang.id);
      }
    }
    for (std::size_t i = 0; i < told_.pods.size(); ++i) {
      if (!told_.pods[i].placement) continue;
      ++told_.fitting;
      const Snapshot& now = *transaction_.now();
      const NodeIndex node = now.names().Find(told_.pods[i].placement->node);
      if (IsPlanOnly(now.node(node).spec(), ask_.pods[i].shape)) ++told_.plans_only;
    }
    told_.nodes.snapshot = transaction_.now();
    if (ask_.explains) told_.after = SummarizeModels(*transaction_.now());
    return std::move(told_);
  }

 private:
  // Of kube-scheduler: of equal priority the first that comes.
  [[nodiscard]] std::vector<std::size_t> InTheirOrder() const {
    std::vector<std::size_t> order = UpTo(ask_.pods.size());
    std::ranges::stable_sort(order, std::greater<>(),
                             [this](std::size_t i) { return ask_.pods[i].priority; });
    return order;
  }

  [[nodiscard]] std::string_view HeldBack(std::size_t pod) const {
    return ask_.held_back.empty() ? std::string_view() : ask_.held_back[pod];
  }

  void RefuseFor(std::size_t i, std::string_view text) {
    const auto known = std::ranges::find_if(
        told_.whys, [text](const WhyNot& why) { return !why.told && why.text == text; });
    if (known != told_.whys.end()) {
      return Refuse(i, static_cast<std::size_t>(known - told_.whys.begin()));
    }
    Refuse(i, NewWhy({std::string(text), std::nullopt}));
  }

  [[nodiscard]] bool StartsWhole(const PodRequest& pod) const {
    return !pod.gang.empty() && pod.refusal.empty() && ask_.starts_whole && ask_.starts_whole(pod);
  }

  // The members of each gang that starts whole, and where members of any are already.
  void FindGangs() {
    std::set<GangId> asked;
    for (std::size_t i = 0; i < ask_.pods.size(); ++i) {
      const PodRequest& pod = ask_.pods[i];
      if (pod.gang.empty()) continue;
      asked.insert(pod.gang.id);
      if (StartsWhole(pod) && HeldBack(i).empty()) gangs_[pod.gang.id].push_back(i);
    }
    if (asked.empty()) return;
    transaction_.now()->ForEachPod([&](const auto& pod, NodeIndex) {
      const GangId& gang = pod->pod.gang.id;
      if (asked.contains(gang)) gang_nodes_[gang].insert(pod->placement.node);
    });
  }

  [[nodiscard]] GroupMembers MembersOf(const PodRequest& pod, const GangPart* of = nullptr) const {
    const auto found = gang_nodes_.find(pod.gang.id);
    if (found == gang_nodes_.end()) return {};
    const std::vector<std::string> names(found->second.begin(), found->second.end());
    return MembersOn(*transaction_.now(), pod, names, of);
  }

  // As the Extender asks.
  [[nodiscard]] Question QuestionAbout(const PodRequest& pod) const {
    Question question{.pod = pod, .candidates = all_, .guard = ask_.guard};
    question.reservations = KeptNow();
    if (!NeedsGroup(pod) || !pod.refusal.empty()) return question;
    question.group.tree = tree_;
    if (!pod.gang.empty()) question.group.members = MembersOf(pod, PartOf(pod.gang, pod.role));
    return question;
  }

  // together: with others of its gang, which are to leave what is kept for others; one alone may
  // take what is kept for it or its gang. False: it does not fit.
  bool Put(const PodRequest& pod, const Placement& placement, bool together) {
    std::shared_ptr<const Earmarks> kept;
    if (kept_) {
      BesideEarmarks beside(kept_->earmarks(), *transaction_.now());
      const NodeIndex node = transaction_.now()->names().Find(placement.node);
      if (!beside.Put(pod, node) && together) return false;
      kept = beside.With();
    }
    if (!transaction_.Put(pod, placement)) return false;
    if (kept != nullptr) kept_ = kept_->With(std::move(kept));
    if (!pod.gang.empty()) gang_nodes_[pod.gang.id].insert(placement.node);
    return true;
  }

  [[nodiscard]] const Reservations* KeptNow() const { return kept_ ? &*kept_ : nullptr; }

  struct Moment {
    Transaction::Mark mark;
    std::map<GangId, std::set<std::string>> gang_nodes;
    std::optional<Reservations> kept;
  };
  [[nodiscard]] Moment Here() const { return {transaction_.Here(), gang_nodes_, kept_}; }
  void Return(const Moment& moment) {
    transaction_.Return(moment.mark);
    gang_nodes_ = moment.gang_nodes;
    kept_ = moment.kept;
  }

  // The nodes that lack nothing of what kube-scheduler counts beside.
  [[nodiscard]] std::vector<NodeIndex> WithOtherRoom(const PodRequest& pod) const {
    std::vector<NodeIndex> nodes;
    const Snapshot& now = *transaction_.now();
    std::ranges::copy_if(all_, std::back_inserter(nodes),
                         [&](NodeIndex node) { return LackOf(now.node(node), pod).empty(); });
    return nodes;
  }

  // The others.
  [[nodiscard]] std::vector<NodeIndex> WithoutOtherRoom(const PodRequest& pod) const {
    std::vector<NodeIndex> without;
    std::ranges::set_difference(all_, WithOtherRoom(pod), std::back_inserter(without));
    return without;
  }

  // As kube-scheduler: by what Berth says first, then by its own scores; then the first by name.
  [[nodiscard]] NodeIndex BestOf(Engine& engine, const PodRequest& pod,
                                 const Judgement& judged) const {
    const auto& snapshot = transaction_.now();
    std::vector<std::uint8_t> priorities;
    if (ask_.guard != NodeGuard::kOff && AsksForNothingOfOurs(pod)) {
      priorities = GuardedPriorities(*snapshot, judged.fitting);
    }
    if (priorities.empty()) {
      priorities = Priorities(engine, snapshot, pod, judged.fitting, judged.pull);
    }
    const std::uint8_t highest = *std::ranges::max_element(priorities);
    std::optional<std::int64_t> most;
    NodeIndex best = kNoNode;
    for (std::size_t i = 0; i < priorities.size(); ++i) {
      if (priorities[i] != highest) continue;
      const std::int64_t score = SchedulerScore(snapshot->node(judged.fitting[i]), pod);
      if (most && score <= *most) continue;
      most = score;
      best = judged.fitting[i];
    }
    return best;
  }

  // The best node takes it. Empty: none does.
  std::optional<Placement> Place(const PodRequest& pod) {
    Engine& engine = engine_.For(pod.shape);
    const std::vector<NodeIndex> candidates = WithOtherRoom(pod);
    Question question = QuestionAbout(pod);
    question.candidates = candidates;
    const auto& snapshot = transaction_.now();
    const Judgement judged = Judge(engine, snapshot, question);
    if (judged.fitting.empty()) return std::nullopt;
    const NodeIndex best = BestOf(engine, pod, judged);
    auto placement = PlaceInGroup(engine, snapshot, pod, question.group, best);
    if (!placement || !Put(pod, *placement, false)) return std::nullopt;
    return *std::move(placement);
  }

  void PlaceAlone(std::size_t i) {
    const PodRequest& pod = ask_.pods[i];
    const auto known = std::ranges::find_if(alike_, [&pod](const auto& kind) {
      const bool refused = !pod.refusal.empty() && kind.first->refusal == pod.refusal;
      return refused || AreAlike(*kind.first, pod);
    });
    if (known != alike_.end()) return Refuse(i, known->second);
    told_.pods[i].placement = Place(pod);
    if (told_.pods[i].placement) return;
    const std::size_t why = WhyOf(pod);
    if (why < kMostWhys) alike_.emplace_back(&pod, why);
    Refuse(i, why);
  }

  void Refuse(std::size_t i, std::size_t why) {
    told_.pods[i].why = why;
    ++told_.whys[why].pods;
  }

  // A new entry of `whys`; beyond kMostWhys the last one, which explains nothing.
  std::size_t NewWhy(WhyNot why) {
    if (told_.whys.size() == kMostWhys) {
      told_.whys.push_back({"not explained: more than " + std::to_string(kMostWhys) +
                                " kinds of pods and gangs fit no node",
                            std::nullopt});
    } else if (told_.whys.size() < kMostWhys) {
      told_.whys.push_back(std::move(why));
    }
    return told_.whys.size() - 1;
  }

  [[nodiscard]] std::optional<PodExplanation> Explain(const PodRequest& pod) {
    if (!ask_.explains || told_.whys.size() >= kMostWhys) return std::nullopt;
    const Question question = QuestionAbout(pod);
    return ExplainPod(engine_.current(), {.snapshot = transaction_.now(),
                                          .pod = pod,
                                          .group = question.group,
                                          .limits = ask_.limits,
                                          .guard = ask_.guard,
                                          .reservations = KeptNow()});
  }

  std::size_t WhyOf(const PodRequest& pod) {
    auto explained = Explain(pod);
    if (!explained) return NewWhy({});
    std::string text = WholeLineOf(explained->line);
    return NewWhy({std::move(text), std::move(explained)});
  }

  // --- gangs

  void RefuseAll(const std::vector<std::size_t>& members, std::size_t why) {
    for (const std::size_t i : members) Refuse(i, why);
  }

  // Puts the members of a gang there, one plan after the other.
  class Members final : public PlacesCheck {
   public:
    Members(WhatIfPlanner& planner, const GangAsk& ask)
        : planner_(planner), ask_(ask), before_(planner.Here()) {}
    void Begin() override { planner_.Return(before_); }
    bool Take(const GangPlan::Place& place) override {
      return planner_.Put(ask_.members[place.member].pod, place.placement, true);
    }

   private:
    WhatIfPlanner& planner_;
    const GangAsk& ask_;
    const Moment before_;
  };

  // Plans the gang and puts its members there.
  bool PutTogether(const std::vector<std::size_t>& members, const GangAsk& ask,
                   GangShortage& shortage, std::string& part) {
    const Planning with{transaction_.now(), *tree_, engine_.For(ask.members.front().pod.shape),
                        room_};
    Members check(*this, ask);
    const auto plan = PlanChecked(
        ask, [&with](const GangAsk& of) { return PlanGang(with, of); }, check);
    if (!plan) {
      check.Begin();
      shortage = plan.error();
      if (shortage.part) part = PartText(with, ask_.levels, ask, shortage);
      return false;
    }
    for (const GangPlan::Place& place : plan->places) {
      told_.pods[members[place.member]].placement = place.placement;
    }
    return true;
  }

  // The minimums of roles. Returns which are more than the plan has, in words; "" = none.
  std::string AskOfRoles(const std::vector<std::size_t>& members, GangAsk& ask) const {
    const Gang& gang = ask_.pods[members.front()].gang;
    RoleCounts there;
    for (const NodeIndex node : ask.present.nodes) {
      for (const auto& held : transaction_.now()->node(node).pods()) {
        if (held->pod.gang.id == gang.id) ++there[held->pod.role];
      }
    }
    RoleCounts all = there;
    for (const std::size_t i : members) ++all[ask_.pods[i].role];
    if (NeedsAll(gang, all)) {
      ask.minimum = std::max(ask.minimum, std::ssize(members));
      return "";
    }
    ask.roles = MissingRoles(gang, there);
    std::int64_t of_roles = 0;
    for (const GangRole& role : ask.roles) of_roles += role.minimum;
    ask.minimum = std::max(ask.minimum, of_roles);
    const std::vector<GangRole> lacks = MissingRoles(gang, all);
    if (lacks.empty()) return "";
    return "its gang " + gang.id.full_name() + " needs " +
           CountText(lacks.front().minimum, "more pod") + " of role " + lacks.front().name;
  }

  void PlaceGang(const GangId& id) {
    std::vector<std::size_t>& members = gangs_[id];
    for (const std::size_t i : members) engine_.Arrived(ask_.pods[i], transaction_.now());
    const PodRequest& first = ask_.pods[members.front()];
    std::erase_if(members, [&](std::size_t i) {
      const std::string apart = WhyApart(ask_.pods[i], first.gang, first.scheduler);
      if (!apart.empty()) RefuseFor(i, apart);
      return !apart.empty();
    });
    const auto given = static_cast<std::int64_t>(members.size());
    GangAsk ask;
    ask.present = MembersOf(first);
    AskForDomains(first, ask);
    const std::int64_t minimum = first.gang.minimum.value_or(given + ask.present.placed);
    ask.minimum = minimum - ask.present.placed;
    if (std::string lacks = AskOfRoles(members, ask); !lacks.empty()) {
      return RefuseAll(members, NewWhy({std::move(lacks), std::nullopt}));
    }
    if (ask.minimum <= 0) {  // it has begun: the others come as they come
      for (const std::size_t i : members) PlaceAlone(i);
      return;
    }
    if (given < ask.minimum) {
      const std::string text =
          "its gang " + id.full_name() + " needs " + CountText(minimum, "pod") + ": the plan has " +
          std::to_string(given) + ", and " + std::to_string(ask.present.placed) + " have a node";
      return RefuseAll(members, NewWhy({text, std::nullopt}));
    }
    for (const std::size_t i : members) {
      ask.members.push_back({.pod = ask_.pods[i],
                             .rank = MemberRank(ask_.pods[i]),
                             .excluded = WithoutOtherRoom(ask_.pods[i])});
    }
    GangShortage shortage;
    std::string part;  // that has no domain
    if (!PutTogether(members, ask, shortage, part)) {
      return RefuseAll(members, WhyNotWhole(members, ask, shortage, std::move(part)));
    }
    for (const std::size_t i : members) {  // beyond the minimum
      if (!told_.pods[i].placement) PlaceAlone(i);
    }
    if (!ask_.explains || told_.wishes.size() >= kMostWhys) return;
    for (const std::string& wish : WishTexts(*transaction_.now(), *tree_, ask_.levels, first)) {
      told_.wishes.push_back("gang " + id.full_name() + ": " + wish);
    }
  }

  // One after the other, so many fit; the next one is explained where it does not.
  std::size_t WhyNotWhole(const std::vector<std::size_t>& members, const GangAsk& ask,
                          const GangShortage& shortage, std::string part) {
    if (!ask_.explains || told_.whys.size() >= kMostWhys) return NewWhy({});
    std::vector<std::shared_ptr<const PodRequest>> pods;  // the ask owns them
    for (const GangMember& member : ask.members) {
      pods.emplace_back(std::shared_ptr<void>(), &member.pod);
    }
    GangLack lack =
        WhyNoPlan(*transaction_.now(), *tree_, ask_.levels, pods, ask.minimum, ask.roles, true);
    if (lack.for_good) part = std::move(lack.text);
    const PodRequest& first = ask_.pods[members.front()];
    const Moment before = Here();
    RoleCounts fits;
    std::map<std::string, PodExplanation> next;  // that does not fit, by role
    std::int64_t fit = 0;
    for (const std::size_t i : part.empty() ? members : std::vector<std::size_t>()) {
      const PodRequest& pod = ask_.pods[i];
      if (Place(pod)) {
        ++fit;
        ++fits[pod.role];
      } else if (auto told = next.contains(pod.role) ? std::nullopt : Explain(pod)) {
        next.emplace(pod.role, *std::move(told));
      }
    }
    Return(before);
    const auto role = std::ranges::find_if(
        ask.roles, [&fits](const GangRole& of) { return fits[of.name] < of.minimum; });
    const bool of_role = part.empty() && role != ask.roles.end();
    const auto named = of_role ? next.find(role->name) : next.begin();
    std::string text = "its gang " + first.gang.id.full_name() + " needs " +
                       std::to_string(ask.minimum) + " of these " +
                       CountText(std::ssize(members), "pod") + " at once; ";
    if (!part.empty()) {
      text += part;
    } else if (of_role || fit < ask.minimum) {
      if (of_role) fit = fits[role->name];
      if (of_role) text += std::to_string(role->minimum) + " of role " + role->name + ": ";
      text += fit == 0 ? "none fits alone"
                       : std::to_string(fit) + (fit == 1 ? " fits" : " fit") + " one by one";
      if (named != next.end()) {
        text += (fit == 0 ? "; the first one " : "; the next one ") + named->second.sentence;
      }
    } else {
      text += "they fit one by one, but not as close together as they ask";
    }
    if (!shortage.searched) text += " (search incomplete)";
    std::optional<PodExplanation> told;
    if (named != next.end()) told = std::move(named->second);
    return NewWhy({std::move(text), std::move(told)});
  }

  const WhatIfAsk& ask_;
  EngineApart& engine_;
  Transaction transaction_;
  const std::shared_ptr<const DomainTree> tree_;
  std::vector<NodeIndex> all_;
  GangRoom room_;
  std::map<GangId, std::vector<std::size_t>> gangs_;  // indices into the ask
  std::map<GangId, std::set<std::string>> gang_nodes_;
  std::optional<Reservations> kept_;  // with those that have their places here
  std::set<GangId> planned_;
  std::vector<std::pair<const PodRequest*, std::size_t>> alike_;  // that fit nowhere, and why
  WhatIfAnswer told_;
};

}  // namespace

EngineApart::EngineApart(const Engine& engine, const LearnedMix* mix)
    : mix_(mix == nullptr ? nullptr : std::make_shared<LearnedMix>(*mix)),
      engine_(mix_ == nullptr ? engine.Apart() : engine.Apart(mix_)) {}

void EngineApart::Arrived(const PodRequest& pod, const std::shared_ptr<const Snapshot>& snapshot) {
  if (mix_ == nullptr || !pod.refusal.empty()) return;
  mix_->Observe(WithCompute(pod.shape, *snapshot));
  engine_->Follow(snapshot);
}

Engine& EngineApart::For(const RequestShape& shape) {
  if (shapes_.insert(shape).second && shapes_.size() > kMostTables) {
    engine_->ForgetTables();
    shapes_ = {shape};
  }
  return *engine_;
}

Result<WhatIfAnswer> WhatIf(EngineApart& engine, const WhatIfAsk& ask) {
  BERTH_TRY(EditedNodes nodes, Edit(ask.snapshot, ask.nodes));
  return WhatIfPlanner(engine, ask, std::move(nodes)).Plan();
}

Result<WhatIfAnswer> WhatIf(const Engine& engine, const WhatIfAsk& ask, const LearnedMix* mix) {
  EngineApart apart(engine, mix);
  return WhatIf(apart, ask);
}

}  // namespace berth
