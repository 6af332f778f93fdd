// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/node_access.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "scoring/admission.h"
#include "scoring/explain/node_report.h"
#include "scoring/filters/device_fit.h"
#include "scoring/registry.h"

namespace berth {
namespace {

std::span<const Toleration> TolerationsOf(const PodRequest& pod) {
  if (pod.constraints == nullptr) return {};
  return pod.constraints->tolerations;
}

bool IsSelected(const NodeSpec& node, const PodRequest& pod) {
  return pod.constraints == nullptr || !pod.constraints->selects() ||
         SelectsNode(*pod.constraints, node.name, node.labels);
}

// kFits: none of them excludes the pod.
Reason TaintReason(const NodeSpec& node, const PodRequest& pod, bool passing) {
  const std::span<const Toleration> tolerations = TolerationsOf(pod);
  const bool excludes = std::ranges::any_of(node.taints, [&](const Taint& taint) {
    return (passing || !PassesByItself(taint)) && !Tolerates(tolerations, taint);
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
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
    return count + (one ? " is" : " are") + " closed to it (" + text + ")";
  }
  const Reason reason = *kinds.reasons.begin();
  if (reason == Reason::kTaintNotTolerated && kinds.taints.size() == 1) {
    const std::string& taint = *kinds.taints.begin();
    if (taint.starts_with(kCordonTaint)) return count + (one ? " is" : " are") + " cordoned";
    return count + (one ? " has" : " have") + " taint " + taint;
  }
  if (reason == Reason::kNodeNotSelected) {
    const std::string labels = LabelsSelected(pod);
    if (!labels.empty()) return count + (one ? " is" : " are") + " not in " + labels;
  }
  return berth::TextOf(reason, nodes);
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
  return NodeTraitsMatch().Check(node, pod.shape);
}

Reason FirstInOrder(const Node& node, const PodRequest& pod, Reason found) {
  const Verdict verdict = VerdictOf(found);
  const bool is_of_pod =
      found == Reason::kPodRefused || verdict == Verdict::kFits || verdict == Verdict::kPassedOver;
  if (is_of_pod) return found;
  if (const Reason closed = ClosedBy(node, pod); closed != Reason::kFits) return closed;
  if (!node.spec().ready) return Reason::kNodeNotReady;
  const Reason passing = TaintReason(node.spec(), pod, true);
  return passing == Reason::kFits ? found : passing;
}

ClosedNodes CountClosed(const Snapshot& snapshot, const Question& question,
                        std::span<const Reason> reasons) {
  RequestShape shape = question.pod.shape;
  shape.nodes.required.clear();
  shape.nodes.forbidden.clear();
  ClosedNodes closed;
  Kinds kinds;
  const std::span<const Toleration> tolerations = TolerationsOf(question.pod);
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const Node& node = snapshot.node(question.candidates[i]);
    const Reason reason = ClosedBy(node, question.pod);
    if (reason == Reason::kFits || reason != reasons[i]) continue;
    ++closed.nodes;
    closed.would_take += FirstObjection(node, shape) == Reason::kFits ? 1 : 0;
    kinds.reasons.insert(reason);
    if (reason != Reason::kTaintNotTolerated) continue;
    for (const Taint& taint : node.spec().taints) {
      if (!Tolerates(tolerations, taint)) kinds.taints.insert(berth::TextOf(taint));
    }
  }
  if (closed.nodes > 0) closed.text = TextOf(closed.nodes, kinds, question.pod);
  return closed;
}

std::string TooLittleInAll(const Snapshot& snapshot, const Question& question,
                           std::span<const Reason> reasons) {
  const RequestShape& shape = question.pod.shape;
  Reason reason = Reason::kFits;
  std::int64_t nodes = 0, most = 0;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    const Node& node = snapshot.node(question.candidates[i]);
    if (ClosedBy(node, question.pod) != Reason::kFits) continue;
    if (++nodes > 1 && reasons[i] != reason) return "";
    reason = reasons[i];
    const NodeSpec& spec = node.spec();
    most = std::max(most, reason == Reason::kTooFewGpus      ? node.healthy_gpus()
                          : reason == Reason::kTooFewCpus    ? spec.cpu_milli
                          : reason == Reason::kTooLittleDisk ? spec.ephemeral_bytes.value_or(0)
                                                             : spec.memory_bytes);
  }
  const std::string labels =
      question.pod.constraints == nullptr ? "" : LabelsSelected(question.pod);
  const std::string of = (nodes == 1 ? "its only node" : "its " + CountText(nodes, "node")) +
                         (labels.empty() ? "" : " in " + labels) +
                         (nodes == 1 ? " has " : " have at most ");
  switch (reason) {
    case Reason::kTooFewGpus:
      return of + CountText(most, "healthy GPU") + ", it needs " +
             std::to_string(shape.gpu_count());
    case Reason::kTooFewCpus:
      return of + CpuText(most) + " CPUs, it needs " + CpuText(shape.cpu_milli);
    case Reason::kTooLittleMemory:
      return of + MemoryText(most) + " of memory, it needs " + MemoryText(shape.memory_bytes);
    case Reason::kTooLittleDisk:
      return of + MemoryText(most) + " of ephemeral storage, it needs " +
             MemoryText(shape.ephemeral_bytes);
    default:
      return "";
  }
}

}  // namespace berth
