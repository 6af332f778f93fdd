// SPDX-License-Identifier: Apache-2.0
//
// Describe: the members of values that are kept for long. What has to look at all of a value, such
// as how many bytes it holds (held_bytes.h), uses this, so that no member is overlooked: each
// description takes its value apart into all members, and does not compile when there is another.
//
// visit is called once, with every member in order. Values without anything on the heap (trivially
// copyable ones) need no description.
#pragma once

#include "cluster/values/gang.h"
#include "cluster/values/labels.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/node_wishes.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

template <class Visit>
void Describe(Visit&& visit, const MigSlices& value) {
  const auto& [wants] = value;
  visit(wants);
}

template <class Visit>
void Describe(Visit&& visit, const ModelRule& value) {
  const auto& [refused, part] = value;
  visit(refused, part);
}

// Not the verdicts that it remembers: they come and go while it is kept.
template <class Visit>
void Describe(Visit&& visit, const ModelRules& value) {
  visit(value.rules());
}

template <class Visit>
void Describe(Visit&& visit, const GpuRule& value) {
  const auto& [refused, uuid] = value;
  visit(refused, uuid);
}

template <class Visit>
void Describe(Visit&& visit, const LabelRequirement& value) {
  const auto& [key, op, values] = value;
  visit(key, op, values);
}

template <class Visit>
void Describe(Visit&& visit, const Neighbours& value) {
  const auto& [namespace_name, near, far] = value;
  visit(namespace_name, near, far);
}

template <class Visit>
void Describe(Visit&& visit, const TraitWish& value) {
  const auto& [trait, weight] = value;
  visit(trait, weight);
}

template <class Visit>
void Describe(Visit&& visit, const NodeWishes& value) {
  const auto& [required, forbidden, wishes, profile] = value;
  visit(required, forbidden, wishes, profile);
}

template <class Visit>
void Describe(Visit&& visit, const RequestShape& value) {
  const auto& [cpu_milli, memory_bytes, gpus, models, ephemeral_bytes, links, gpu_resource,
               isolation, min_gpu_memory_mib, share_agent, one_per_container, model_rules,
               gpu_rules, spread, workload, nodes, neighbours, beside_nic] = value;
  visit(cpu_milli, memory_bytes, gpus, models, ephemeral_bytes, links, gpu_resource, isolation,
        min_gpu_memory_mib, share_agent, one_per_container, model_rules, gpu_rules, spread,
        workload, nodes, neighbours, beside_nic);
}

template <class Visit>
void Describe(Visit&& visit, const ContainerAsk& value) {
  const auto& [name, gpus, ends_first, index] = value;
  visit(name, gpus, ends_first, index);
}

template <class Visit>
void Describe(Visit&& visit, const PodId& value) {
  const auto& [uid, namespace_name, name] = value;
  visit(uid, namespace_name, name);
}

template <class Visit>
void Describe(Visit&& visit, const GangId& value) {
  const auto& [convention, namespace_name, name] = value;
  visit(convention, namespace_name, name);
}

template <class Visit>
void Describe(Visit&& visit, const GangRole& value) {
  const auto& [name, minimum] = value;
  visit(name, minimum);
}

template <class Visit>
void Describe(Visit&& visit, const GangController& value) {
  const auto& [kind, name, uid, asked] = value;
  visit(kind, name, uid, asked);
}

template <class Visit>
void Describe(Visit&& visit, const Gang& value) {
  const auto& [id, minimum, total, object, hold, has_roles, roles, controller, followers,
               one_by_one] = value;
  visit(id, minimum, total, object, hold, has_roles, roles, controller, followers, one_by_one);
}

template <class Visit>
void Describe(Visit&& visit, const Toleration& value) {
  const auto& [key, op, text, effect] = value;
  visit(key, op, text, effect);
}

template <class Visit>
void Describe(Visit&& visit, const NodeSelectorTerm& value) {
  const auto& [labels, fields] = value;
  visit(labels, fields);
}

template <class Visit>
void Describe(Visit&& visit, const NodeConstraints& value) {
  const auto& [selector, either, tolerations, versions] = value;
  visit(selector, either, tolerations, versions);
}

template <class Visit>
void Describe(Visit&& visit, const PodRequest& value) {
  const auto& [id, shape, containers, container_count, refusal, priority, may_preempt, gang,
               scheduler, domain, constraints, labels, init_container_count, belongs_on_any_node,
               classes, device_class, checkpointed, own_to_scheduler, role, leads] = value;
  visit(id, shape, containers, container_count, refusal, priority, may_preempt, gang, scheduler,
        domain, constraints, labels, init_container_count, belongs_on_any_node, classes,
        device_class, checkpointed, own_to_scheduler, role, leads);
}

template <class Visit>
void Describe(Visit&& visit, const DeviceGrant& value) {
  const auto& [gpu, milli, memory_mib, uuid, memory_milli] = value;
  visit(gpu, milli, memory_mib, uuid, memory_milli);
}

template <class Visit>
void Describe(Visit&& visit, const MigGrant& value) {
  const auto& [gpu, start, profile, shared, uuid] = value;
  visit(gpu, start, profile, shared, uuid);
}

template <class Visit>
void Describe(Visit&& visit, const Placement& value) {
  const auto& [node, cpu_milli, memory_bytes, grants, mig, places, ephemeral_bytes, agent] = value;
  visit(node, cpu_milli, memory_bytes, grants, mig, places, ephemeral_bytes, agent);
}

}  // namespace berth
