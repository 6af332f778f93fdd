// SPDX-License-Identifier: Apache-2.0
#include "test/support/worlds_json.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>

#include "server/wire/pod/devices_annotation.h"

namespace berth::test {
namespace {

using nlohmann::json;

std::string TimeText(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

json Amount(const OtherResource& other) { return std::to_string(other.amount); }

json Expressions(const LabelSelector& selector) {
  constexpr std::array kWords = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};
  json list = json::array();
  for (const LabelRequirement& one : selector) {
    list.push_back({{"key", one.key},
                    {"operator", kWords.at(static_cast<std::size_t>(one.op))},
                    {"values", one.values}});
  }
  return list;
}

void AddConstraints(const NodeConstraints& constraints, json& spec) {
  for (const LabelRequirement& one : constraints.selector) {
    spec["nodeSelector"][one.key] = one.values.front();
  }
  for (const Toleration& one : constraints.tolerations) {
    json toleration = {{"operator", one.op == TolerationOperator::kExists ? "Exists" : "Equal"}};
    if (!one.key.empty()) toleration["key"] = one.key;
    if (!one.value.empty()) toleration["value"] = one.value;
    if (one.effect)
      toleration["effect"] = kTaintEffectWords.at(static_cast<std::size_t>(*one.effect));
    spec["tolerations"].push_back(toleration);
  }
  if (!constraints.either) return;
  json terms = json::array();
  for (const NodeSelectorTerm& term : *constraints.either) {
    json either = json::object();
    if (!term.labels.empty()) either["matchExpressions"] = Expressions(term.labels);
    if (!term.fields.empty()) either["matchFields"] = Expressions(term.fields);
    terms.push_back(either);
  }
  spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {
      {"nodeSelectorTerms", terms}};
}

// ReplicaSet, Job, ...: a record of a pod knows its controller by its UID alone.
std::string KindOf(const PodRequest& pod, bool completes) {
  if (pod.id.namespace_name == "kube-system") return pod.controller.empty() ? "Node" : "DaemonSet";
  return completes || pod.series != 0 ? "Job" : "ReplicaSet";
}

json Requests(const PodRequest& pod, json& annotations) {
  json requests = {{"cpu", std::to_string(pod.shape.cpu_milli) + "m"},
                   {"memory", std::to_string(pod.shape.memory_bytes)}};
  if (const auto* whole = std::get_if<WholeGpus>(&pod.shape.gpus)) {
    requests["nvidia.com/gpu"] = std::to_string(whole->count);
  } else if (const auto* share = std::get_if<GpuShare>(&pod.shape.gpus)) {
    requests["berth.dev/gpu-milli"] = std::to_string(share->milli);
  }
  if (pod.others != nullptr) {
    for (const OtherResource& other : *pod.others) requests[other.name] = Amount(other);
  }
  if (pod.mobility == Mobility::kDoNotDisrupt) annotations["karpenter.sh/do-not-disrupt"] = "true";
  if (pod.mobility == Mobility::kNotSafeToEvict) {
    annotations["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false";
  }
  if (pod.keep) annotations["berth.dev/keep"] = "true";
  if (pod.checkpointed) annotations["berth.dev/checkpointed-at"] = TimeText(*pod.checkpointed);
  if (pod.expected_seconds > 0) {
    annotations["berth.dev/expected-duration"] = std::to_string(pod.expected_seconds) + "s";
  }
  if (!pod.gang.empty()) {
    annotations["berth.dev/gang"] = pod.gang.id.name;
    annotations["berth.dev/gang-size"] = std::to_string(pod.gang.total.value_or(0));
  }
  return requests;
}

}  // namespace

json NodeJson(const NodeSpec& node) {
  json has = {{"cpu", std::to_string(node.cpu_milli) + "m"},
              {"memory", std::to_string(node.memory_bytes)},
              {"pods", std::to_string(node.most_pods)}};
  for (const OtherResource& other : node.others) has[other.name] = Amount(other);
  json all = has;
  if (!node.gpus.empty()) {
    const auto well = std::ranges::count_if(node.gpus, &GpuSpec::healthy);
    has[node.gpu_resource] = std::to_string(well);
    all[node.gpu_resource] = std::to_string(node.gpus.size());
  }
  json made = {{"apiVersion", "v1"}, {"kind", "Node"}};
  made["metadata"] = {{"name", node.name}, {"uid", "node-" + node.name}};
  for (const auto& [key, value] : node.labels) made["metadata"]["labels"][key] = value;
  made["spec"]["taints"] = json::array();
  for (const Taint& taint : node.taints) {
    if (taint.key == "node.kubernetes.io/unschedulable") made["spec"]["unschedulable"] = true;
    made["spec"]["taints"].push_back(
        {{"key", taint.key},
         {"value", taint.value},
         {"effect", kTaintEffectWords.at(static_cast<std::size_t>(taint.effect))}});
  }
  made["status"] = {{"allocatable", has}, {"capacity", all}};
  made["status"]["conditions"] = {{{"type", "Ready"}, {"status", node.ready ? "True" : "False"}}};
  return made;
}

json PodJson(const PodRequest& pod, const World::RunningPod* on, const NodeSpec* node) {
  json annotations = json::object(), meta = {{"name", pod.id.name}, {"uid", pod.id.uid}};
  const bool completes = on != nullptr && on->life.completes;
  meta["namespace"] = pod.id.namespace_name;
  meta["creationTimestamp"] = TimeText(World::Now() - std::chrono::hours(1));
  const json asks = Requests(pod, annotations);
  if (pod.labels != nullptr) {
    for (const auto& [key, value] : *pod.labels) meta["labels"][key] = value;
  }
  const std::string kind = KindOf(pod, completes);
  if (!pod.controller.empty() || kind == "Node") {
    meta["ownerReferences"] = {{{"apiVersion", kind == "Job" ? "batch/v1" : "apps/v1"},
                                {"kind", kind},
                                {"name", pod.id.name.substr(0, pod.id.name.rfind('-'))},
                                {"uid", kind == "Node" ? "node" : pod.controller},
                                {"controller", true}}};
  }
  json spec = {{"priority", pod.priority}, {"terminationGracePeriodSeconds", pod.grace_seconds}};
  spec["schedulerName"] = pod.scheduler.empty() ? "default-scheduler" : pod.scheduler;
  spec["restartPolicy"] = kind == "Job" ? "Never" : "Always";
  if (pod.deadline_seconds > 0) spec["activeDeadlineSeconds"] = pod.deadline_seconds;
  if (pod.constraints != nullptr) AddConstraints(*pod.constraints, spec);
  if (pod.mobility == Mobility::kHostPath) {
    spec["volumes"] = {{{"name", "scratch"}, {"hostPath", {{"path", "/mnt/scratch"}}}}};
  }
  json limits = asks;
  limits.erase("cpu");
  spec["containers"] = {{{"name", "main"},
                         {"image", "registry.example/app:1"},
                         {"resources", {{"requests", asks}, {"limits", limits}}}}};
  json status = {{"phase", "Pending"}};
  if (on != nullptr) {
    spec["nodeName"] = on->placement.node;
    status["phase"] = !on->ended ? "Running" : completes ? "Succeeded" : "Failed";
    if (on->life.started) status["startTime"] = TimeText(*on->life.started);
    if (on->life.ends) {
      meta["deletionTimestamp"] = TimeText(*on->life.ends);
      meta["deletionGracePeriodSeconds"] = pod.grace_seconds;
    }
    if (node != nullptr && !on->placement.grants.empty()) {
      annotations[wire::kDevicesKey] = wire::EncodeDevices(pod, on->placement, *node);
    }
  } else {
    status["conditions"] = {
        {{"type", "PodScheduled"},
         {"status", "False"},
         {"reason", "Unschedulable"},
         {"message", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}}};
  }
  meta["annotations"] = annotations;
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", meta},
          {"spec", spec},
          {"status", status}};
}

json BudgetJson(const PodDisruptionBudget& budget) {
  json made = {{"apiVersion", "policy/v1"}, {"kind", "PodDisruptionBudget"}};
  made["metadata"] = {{"namespace", budget.namespace_name},
                      {"name", budget.name},
                      {"uid", "pdb-" + budget.namespace_name + "-" + budget.name}};
  made["spec"]["maxUnavailable"] = budget.disruptions_allowed;
  if (budget.selector) made["spec"]["selector"]["matchExpressions"] = Expressions(*budget.selector);
  made["status"]["disruptionsAllowed"] = budget.disruptions_allowed;
  return made;
}

json KubernetesList(const World& world) {
  json items = json::array();
  std::map<std::string, const NodeSpec*> by_name;
  for (const NodeSpec& node : world.nodes()) {
    items.push_back(NodeJson(node));
    by_name.emplace(node.name, &node);
  }
  for (const World::RunningPod& one : world.pods()) {
    items.push_back(PodJson(one.pod, &one, by_name.at(one.placement.node)));
  }
  for (const PodRequest& pod : world.waiting()) items.push_back(PodJson(pod));
  for (const PodDisruptionBudget& budget : world.budgets()) items.push_back(BudgetJson(budget));
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}};
}

}  // namespace berth::test
