// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/node_likeness.h"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>

#include "base/random.h"
#include "cluster/node/node.h"

namespace berth {
namespace {

class LikenessDigester {
 public:
  template <class... T>
  void Add(const T&... values) {
    (AddOne(values), ...);
  }
  [[nodiscard]] NodeLikeness likeness() const {
    const Digest digest = digester_.digest();
    return std::max(digest.high ^ std::rotl(digest.low, 1), kLikeNoOther + 1);
  }

 private:
  template <class T>
  void AddOne(const T& number) requires std::is_integral_v<T> || std::is_enum_v<T> {
    digester_.Add(static_cast<std::uint64_t>(number));
  }
  void AddOne(const std::string& text) { digester_.Add(text); }
  void AddOne(double number) { digester_.Add(std::bit_cast<std::uint64_t>(number)); }

  Digester digester_;
};

bool IsLikeNoOther(const Node& node) {
  const NodeSpec& spec = node.spec();
  return spec.mig.known() || spec.places.count > 0 || spec.places.foreign ||
         !spec.other_gpus.empty() || !spec.by_claims.empty() ||
         (node.claims() != nullptr && !node.claims()->empty());
}

// Whatever decides which pods fit there when it is empty. A member that is new has to be named
// here: added, or left out for a reason.
void AddSpec(const NodeSpec& spec, LikenessDigester& digester) {
  const auto& [name, gpu_model, cpu_milli, memory_bytes, ready, gpus, gpu_models, ephemeral_bytes,
               labels, taints, soft_taints, links, mig, places, gpu_resource, share_agent, agents,
               part_agent, refused_asks, ready_since, gpu_condition, named_gpus_condition,
               gpu_contradiction, passed_over, agent_lacks, traits, gpu_price, by_claims, beside,
               others, other_gpus, missing, most_pods, gpus_are_parts, agent_serves_all,
               part_agent_ready, share_isolation, shares_need_uuids, refuses_gpu_pods, gpus_to_come,
               carries_out, topology_manager] = spec;
  digester.Add(gpu_model, cpu_milli, memory_bytes, ready, ephemeral_bytes.has_value(),
               ephemeral_bytes.value_or(0), links.identity(), missing, gpu_resource, gpus_are_parts,
               share_agent, agent_serves_all, part_agent, part_agent_ready, share_isolation,
               shares_need_uuids, refuses_gpu_pods, gpu_condition.empty(), gpus_to_come, gpu_price,
               gpu_contradiction.empty(), beside.in_slices > 0, carries_out,
               topology_manager.policy, topology_manager.by_pod);
  digester.Add(traits.size(), gpus.size());
  for (const std::string& trait : traits) digester.Add(trait);
  for (const std::string& model : gpu_models) digester.Add(model);
  for (const GpuSpec& gpu : gpus) {
    digester.Add(gpu.uuid.empty(), gpu.memory_mib, gpu.healthy, gpu.most_users, gpu.cores,
                 gpu.unit_mib, gpu.capability, gpu.foreign);
  }
  // Names and what is like it: `name`, `labels`, `named_gpus_condition`, `ready_since`, `agents`,
  // `passed_over`, `agent_lacks`, the rest of `beside`. What depends on the pod and not its shape
  // (scoring/admission.h): `taints`, `soft_taints`, `refused_asks`, `most_pods`, `others`. Of
  // IsLikeNoOther: `mig`, `places`, `by_claims`, `other_gpus`.
}

// Which GPUs leave together: what links are worth depends on it.
void AddHolders(const Node& node, LikenessDigester& digester) {
  const auto is_idle = [](const GpuFree& gpu) { return gpu.idle(); };
  if (!node.spec().links.known() || std::ranges::none_of(node.gpus(), is_idle)) return;
  for (const auto& pod : node.pods()) {
    GpuMask held = 0;
    for (const DeviceGrant& grant : pod->placement.grants) {
      if (node.spec().FindGpu(grant.gpu) != nullptr) held |= GpuBit(grant.gpu);
    }
    if (held != 0) digester.Add(held);
  }
}

// Which GPUs are kept from the shares of whom. Without these pods the free amounts say it.
void AddModes(const Node& node, LikenessDigester& digester) {
  if (node.with_mode() == 0) return;
  RequestShape shape;
  for (const ShareMode mode : {ShareMode::kTimeSlicing, ShareMode::kSmSharing}) {
    shape.share_mode = mode;
    digester.Add(node.KeptFrom(shape));
  }
}

}  // namespace

NodeLikeness LikenessOf(const Node& node) {
  if (IsLikeNoOther(node)) return kLikeNoOther;
  LikenessDigester digester;
  AddSpec(node.spec(), digester);
  digester.Add(node.free_cpu_milli(), node.free_memory_bytes(), node.free_ephemeral_bytes(),
               node.closed(), node.healthy_gpus(), node.places_taken());
  for (const GpuFree& gpu : node.gpus()) digester.Add(gpu.milli, gpu.users, gpu.memory_mib);
  digester.Add(node.tenants().size());
  for (const Tenants& tenants : node.tenants()) digester.Add(tenants.gpus, tenants.pods);
  AddModes(node, digester);
  AddHolders(node, digester);
  return digester.likeness();
}

}  // namespace berth
