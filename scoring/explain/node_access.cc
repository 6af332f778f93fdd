// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/node_access.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "scoring/admission.h"
#include "scoring/explain/node_report.h"
#include "scoring/filters/device_fit.h"
#include "scoring/registry.h"

namespace berth {

std::string TaintedText(std::int64_t nodes, const std::string& taint) {
  const bool one = nodes == 1;
  const std::string count = CountText(nodes, "node");
  if (taint.starts_with(kCordonTaint)) return count + (one ? " is" : " are") + " cordoned";
  return count + (one ? " has" : " have") + " taint " + taint;
}

namespace {

bool IsSelected(const NodeSpec& node, const PodRequest& pod) {
  return pod.constraints == nullptr || !pod.constraints->selects() ||
         SelectsNode(*pod.constraints, node.name, node.labels);
}

// kFits: none of them excludes the pod.
Reason TaintReason(const NodeSpec& node, const PodRequest& pod, bool passing) {
  const bool excludes = std::ranges::any_of(node.taints, [&](const Taint& taint) {
    return (passing || !PassesByItself(taint)) && !Tolerates(TolerationsOf(pod), taint);
  });
  return excludes ? Reason::kTaintNotTolerated : Reason::kFits;
}

// What CountClosed puts in words.
struct Kinds {
  std::set<Reason> reasons;
  std::set<std::string> taints;
};

// "pool=z": every label that the pod selects, where it selects by nothing else; else "".
std::string LabelsSelected(const PodRequest& pod) {
  constexpr std::size_t kMostNamed = 2;
  const NodeConstraints& constraints = *pod.constraints;
  const LabelSelector& selector = constraints.selector;
  if (constraints.either || selector.empty() || selector.size() > kMostNamed) return "";
  std::string text;
  for (const LabelRequirement& wanted : selector) {
    if (wanted.op != LabelOperator::kIn || wanted.values.size() != 1) return "";
    text += (text.empty() ? "" : ",") + wanted.key + "=" + wanted.values[0];
  }
  return text;
}

std::string WordOf(Reason reason) {
  switch (reason) {
    case Reason::kTaintNotTolerated:
      return "taints";
    case Reason::kNodeNotSelected:
      return "node selector or affinity";
    case Reason::kTraitMissing:
    case Reason::kTraitForbidden:
      return "traits of its workload class";
    default:
      return "versions";
  }
}

std::string TextOf(std::int64_t nodes, const Kinds& kinds, const PodRequest& pod) {
  const std::string count = CountText(nodes, "node");
  const bool one = nodes == 1;
  if (kinds.reasons.size() > 1) {
    std::set<std::string> words;
    for (const Reason reason : kinds.reasons) words.insert(WordOf(reason));
    return count + (one ? " is" : " are") + " closed to it (" + Join(words, ", ") + ")";
  }
  const Reason reason = *kinds.reasons.begin();
  if (reason == Reason::kTaintNotTolerated && kinds.taints.size() == 1) {
    return TaintedText(nodes, *kinds.taints.begin());
  }
  if (reason == Reason::kNodeNotSelected) {
    const std::string labels = LabelsSelected(pod);
    if (!labels.empty()) return count + (one ? " is" : " are") + " not in " + labels;
  }
  return berth::TextOf(reason, nodes);
}

bool AwaitsGpus(const NodeSpec& spec, Reason found) {
  return (found == Reason::kNoGpu || found == Reason::kNoMig) && IsGpuNode(spec) &&
         !spec.has_gpus();
}

// Of a node that does not offer its GPUs: what is against it once it does; else what was found.
Reason BesidesNoGpus(const Node& node, const RequestShape& shape, Reason found) {
  const NodeSpec& spec = node.spec();
  Reason then = Reason::kFits;
  if (found == Reason::kNoGpuOffered) then = FirstObjection(AtItsBest(node), shape);
  if (AwaitsGpus(spec, found)) {
    if (!MayOfferAs(spec, shape.gpu_resource)) return Reason::kOtherResource;
    if (!spec.gpu_model.empty() && !shape.Admits(spec.gpu_model)) return Reason::kModelMismatch;
    RequestShape without = shape;
    without.gpus = NoGpu{};
    then = FirstObjection(node, without);
  }
  return VerdictOf(then) == Verdict::kUnresolvable ? then : found;
}

// Whether a person's doing alone closes it, which is easily undone.
bool OnlyCordoned(const Node& node, const PodRequest& pod) {
  if (!node.spec().cordoned()) return false;
  NodeSpec open = node.spec();
  std::erase_if(open.taints, [](const Taint& taint) { return taint.key == kCordonTaint; });
  return ClosedBy(Node(std::make_shared<const NodeSpec>(open), {}), pod) == Reason::kFits;
}

}  // namespace

bool PassesByItself(const Taint& taint) {
  return IsOfCondition(taint) && taint.key != kCordonTaint;
}

Reason ClosedBy(const Node& node, const PodRequest& pod) {
  const NodeSpec& spec = node.spec();
  if (TaintReason(spec, pod, false) != Reason::kFits) return Reason::kTaintNotTolerated;
  if (!IsSelected(spec, pod)) return Reason::kNodeNotSelected;
  if (const Reason unmet = VersionReason(spec, pod); unmet != Reason::kFits) return unmet;
  return CheckTraits(node, pod.shape);
}

Reason FirstInOrder(const Node& node, const PodRequest& pod, Reason found) {
  const Verdict verdict = VerdictOf(found);
  const bool is_of_pod =
      found == Reason::kPodRefused || verdict == Verdict::kFits || verdict == Verdict::kPassedOver;
  if (is_of_pod) return found;
  if (const Reason closed = ClosedBy(node, pod); closed != Reason::kFits) return closed;
  if (!node.spec().ready) return Reason::kNodeNotReady;
  const Reason passing = TaintReason(node.spec(), pod, true);
  return passing == Reason::kFits ? BesidesNoGpus(node, pod.shape, found) : passing;
}

ClosedNodes CountClosed(const Snapshot& snapshot, const Question& question,
                        std::span<const Reason> reasons) {
  RequestShape shape = question.pod.shape;
  shape.nodes.required.clear();
  shape.nodes.forbidden.clear();
  ClosedNodes closed;
  Kinds kinds;
  bool takes_cordoned = false;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const Node& node = snapshot.node(question.candidates[i]);
    const Reason reason = ClosedBy(node, question.pod);
    if (reason == Reason::kFits || reason != reasons[i]) continue;
    ++closed.nodes;
    if (FirstObjection(node, shape) == Reason::kFits) {
      ++closed.would_take;
      const bool cordoned = !takes_cordoned && OnlyCordoned(node, question.pod);
      if (closed.taker.empty() || cordoned) closed.taker = node.spec().name;
      takes_cordoned |= cordoned;
    }
    kinds.reasons.insert(reason);
    if (reason != Reason::kTaintNotTolerated) continue;
    for (const Taint& taint : node.spec().taints) {
      if (PassesByItself(taint) || Tolerates(TolerationsOf(question.pod), taint)) continue;
      kinds.taints.insert(berth::TextOf(taint));
    }
  }
  if (closed.nodes > 0) closed.text = TextOf(closed.nodes, kinds, question.pod);
  if (takes_cordoned) closed.taker += ", which is cordoned";
  return closed;
}

Node AtItsBest(const Node& node) {
  NodeSpec spec = node.spec();
  spec.ready = true;
  spec.refuses_gpu_pods = false;
  spec.refused_asks = nullptr;
  spec.gpu_condition.clear();
  spec.missing = 0;
  for (GpuSpec& gpu : spec.gpus) gpu.healthy = !gpu.foreign;
  PodRecords stay;
  for (const auto& pod : node.pods()) {
    if (pod->life.comes_back) stay.push_back(pod);
  }
  return Node(std::make_shared<const NodeSpec>(std::move(spec)), std::move(stay));
}

std::string PoolOf(const PodRequest& pod) {
  const std::string labels = pod.constraints == nullptr ? "" : LabelsSelected(pod);
  return labels.empty() ? "" : " in " + labels;
}

std::string SelectedNowhere(const PodRequest& pod) {
  const std::string pool = PoolOf(pod);
  return pool.empty() ? "no node matches its node selector and affinity" : "no node is" + pool;
}

std::string NeverInPool(const Snapshot& snapshot, const Question& question) {
  const PodRequest& pod = question.pod;
  const RequestShape& shape = pod.shape;
  std::map<Reason, std::int64_t> reasons;
  std::string like;  // what the first of them lacks
  std::int64_t nodes = 0, most = 0;
  for (const bool open : {true, false}) {
    for (const NodeIndex candidate : question.candidates) {
      const Node& node = snapshot.node(candidate);
      const NodeSpec& spec = node.spec();
      if (open ? ClosedBy(node, pod) != Reason::kFits : !IsSelected(spec, pod)) continue;
      const Node best = AtItsBest(node);
      const Reason reason = BesidesNoGpus(best, shape, FirstObjection(best, shape));
      if (reason == Reason::kFits || AwaitsGpus(spec, reason)) return "";
      if (++nodes == 1) like = spec.name + " " + LackText(node, pod, reason);
      ++reasons[reason];
      most = std::max(most, reason == Reason::kTooFewGpus      ? best.healthy_gpus()
                            : reason == Reason::kTooFewCpus    ? spec.cpu_milli
                            : reason == Reason::kTooLittleDisk ? spec.ephemeral_bytes.value_or(0)
                                                               : spec.memory_bytes);
    }
    if (nodes > 0) break;
  }
  if (nodes == 0) return question.candidates.empty() ? "" : SelectedNowhere(pod);
  const std::string of = CountText(nodes, "node") + PoolOf(pod);
  if (reasons.size() > 1) {
    std::vector<std::pair<std::int64_t, Reason>> counts;
    for (const auto& [reason, count] : reasons) counts.emplace_back(count, reason);
    std::ranges::sort(counts, std::greater<>());
    constexpr std::size_t kMostTold = 2;
    std::vector<std::string> told;
    for (std::size_t i = 0; i < std::min(kMostTold, counts.size()); ++i) {
      told.push_back(std::to_string(counts[i].first) + " " +
                     std::string(PredicateOf(counts[i].second)));
    }
    return "none of its " + of + " ever takes it: " + Join(told, ", ");
  }
  const std::string its = nodes == 1 ? "its only node" + PoolOf(pod) : "its " + of;
  const std::string has = its + (nodes == 1 ? " has " : " have at most ");
  switch (const Reason reason = reasons.begin()->first; reason) {
    case Reason::kTooFewGpus:
      return has + CountText(most, "healthy GPU") + ", it needs " +
             std::to_string(shape.gpu_count());
    case Reason::kTooFewCpus:
      return has + CpuText(most) + " CPUs, it needs " + CpuText(shape.cpu_milli);
    case Reason::kTooLittleMemory:
      return has + MemoryText(most) + " of memory, it needs " + MemoryText(shape.memory_bytes);
    case Reason::kTooLittleDisk:
      return has + MemoryText(most) + " of ephemeral storage, it needs " +
             MemoryText(shape.ephemeral_bytes);
    default:
      return its + (nodes == 1 ? " never takes it: " : " never take it: ") + like;
  }
}

}  // namespace berth
