// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/dra_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cluster/claims/device_offers.h"
#include "server/dialects/dra/claim_json.h"
#include "server/dialects/dra/device_allocator.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/dialects/dra/dra_json.h"
#include "server/dialects/dra/slice_json.h"
#include "server/dialects/dra/whole_gpus.h"
#include "server/kube/client/api_client.h"
#include "server/wire/json/object_reader.h"

namespace berth::dialects {

struct ClaimCollisions::Holder {
  std::string path;
  OpenClaim claim;
  ClaimUse use;
  std::string node = {}, nominated = {}, phase = {};  // of its pod

  [[nodiscard]] bool IsYounger(const Holder& other) const {
    if (use.allocated_at != other.use.allocated_at)
      return use.allocated_at > other.use.allocated_at;
    return wire::VersionNumber(claim.resource_version) >
           wire::VersionNumber(other.claim.resource_version);
  }
};

void ClaimCollisions::Look() {
  const Instant now = context_.write.clock.Now();
  if (now >= context_.write.fence.WritableUntil()) return;
  const std::vector<DeviceClaims::Collision> collisions = claims_.collisions();
  std::erase_if(known_, [&collisions](const auto& known) {
    return std::ranges::find(collisions, known.first) == collisions.end();
  });
  end_ = now + kMostOfALook;
  bool has_looked = false;
  for (const DeviceClaims::Collision& collision : collisions) {
    Known& known = known_.try_emplace(collision, Known{now + kSettles}).first->second;
    if (now < known.next || std::exchange(has_looked, true)) continue;
    known.next = now + kAgain;
    known.told = Settle(collision, !known.told) || known.told;
  }
}

bool ClaimCollisions::Settle(const DeviceClaims::Collision& collision, bool tells) {
  auto first = Read(collision.one, collision.device);
  if (!first) return false;
  auto second = Read(collision.other, collision.other_device);
  if (!second) return false;
  if (first->IsYounger(*second)) std::swap(*first, *second);
  const std::string why =
      collision.beyond.empty() ? " is in" : " has too little " + collision.beyond + " for";
  std::string text = "device " + collision.other_device + " of node " + collision.node + why +
                     " ResourceClaims " + collision.one + " and " + collision.other;
  const Holder* from = &*second;
  End end = TakeFrom(*from);
  if (end == End::kKept) end = TakeFrom(*(from = &*first));
  const std::string name = FullName(from->claim.namespace_name, from->claim.name);
  if (end == End::kDeallocated) text += "; Berth takes it from " + name;
  if (end == End::kEvicted) text += "; Berth evicts the pod of " + name + ", which has not started";
  if (end == End::kKept) text = "delete one of the pods: " + text;
  if (end != End::kKept) ++taken_back_;
  if (!tells && end == End::kKept) return true;
  context_.on_log(true, "device_in_two_claims", text);
  for (const Holder* const holder : {&*first, &*second}) {
    for (const PodId& pod : holder->use.pods) context_.warn(pod, "DeviceInTwoClaims", text);
  }
  return true;
}

Result<ClaimCollisions::Holder> ClaimCollisions::Read(const std::string& claim,
                                                      const std::string& device) const {
  const std::size_t slash = claim.find('/');
  Holder holder;
  BERTH_TRY(holder.path, kube::ClaimPath(claim.substr(0, slash), claim.substr(slash + 1)));
  BERTH_TRY(kube::ApiResponse response, Send({.path = holder.path}));
  const PaddedText text(std::move(response.body));
  BERTH_TRY(const ResourceClaim held, DecodeResourceClaim(text));
  if (std::ranges::find(held.devices, device, &ClaimedDevice::device) == held.devices.end()) {
    return Fail(Errc::kNotFound, claim + " does not have " + device);
  }
  BERTH_TRY(holder.claim, DecodeOpenClaim(text));
  BERTH_TRY(holder.use, DecodeClaimUse(text));
  if (holder.use.pods.size() != 1) return holder;
  const PodId& pod = holder.use.pods.front();
  BERTH_TRY(std::string path, kube::PodPath(pod.namespace_name, pod.name));
  // Error: it is gone, and Kubernetes deallocates its claim.
  BERTH_TRY(kube::ApiResponse of_pod, Send({.path = std::move(path)}));
  const auto read = [&holder](std::string_view part, simdjson::ondemand::value content) {
    if (part != "spec" && part != "status") return;
    wire::ForEachField(content.get_object(),
                       [&](std::string_view key, simdjson::ondemand::value it) {
                         if (key == "nodeName") holder.node = wire::TextOf(it);
                         if (key == "nominatedNodeName") holder.nominated = wire::TextOf(it);
                         if (key == "phase") holder.phase = wire::TextOf(it);
                       });
  };
  BERTH_TRY(const wire::ObjectMeta meta,
            wire::ReadNamed(PaddedText(std::move(of_pod.body)), "Pod", read));
  if (meta.uid != pod.uid) return Fail(Errc::kNotFound, "the pod is gone");
  return holder;
}

ClaimCollisions::End ClaimCollisions::TakeFrom(const Holder& holder) {
  const auto& pods = holder.use.pods;
  const bool is_bound = !holder.node.empty();
  if (pods.size() > 1 || (is_bound && holder.phase != "Pending")) return End::kKept;
  if (!is_bound && !holder.nominated.empty()) return End::kKept;
  if (is_bound) {
    const auto booked = context_.state.FindPod(pods.front().uid);
    if (!booked || booked->pod.controller.empty() || context_.evictor == nullptr) return End::kKept;
    const bool evicted = context_.evictor->Evict(pods.front()) == PodEvictor::Outcome::kEvicted;
    return evicted ? End::kEvicted : End::kKept;
  }
  kube::FencedWrite write(context_.write.fence);
  const auto sent =
      Send(kube::MergePatch(holder.path + "/status", EncodeDeallocationPatch(holder.claim), {}));
  if (!sent && sent.error().code == Errc::kUnavailable) write.Unanswered();
  return sent ? End::kDeallocated : End::kKept;
}

Result<kube::ApiResponse> ClaimCollisions::Send(kube::ApiRequest request) const {
  const Instant now = context_.write.clock.Now();
  const Instant until = std::min(end_, context_.write.fence.WritableUntil());
  if (now >= until) {
    return Fail(Errc::kDeadline, "no time is left, or this process is not the leader");
  }
  request.timeout = until - now;
  BERTH_TRY(kube::ApiResponse response, context_.write.client.Send(request));
  if (response.ok()) return response;
  return Fail(response.status >= 500 ? Errc::kUnavailable : Errc::kConflict,
              kube::RefusalText(response));
}

namespace {

constexpr const char* kSlices = "resourceslices";
constexpr const char* kClaims = "resourceclaims";
constexpr const char* kClasses = "deviceclasses";
constexpr const char* kTaintRules = "devicetaintrules";

std::vector<std::string> Paths(const char* resource, const std::vector<std::string>& versions) {
  return kube::ApiPaths("resource.k8s.io", versions, resource);
}

// What is kept of a slice, shared with those before it: all devices, or the whole GPUs alone.
auto SlicesThatShare(bool whole_gpus_alone) {
  return [whole_gpus_alone, shared = std::make_shared<SharedDevices>()](
             const PaddedText& text, std::string&) -> Result<ResourceSlice> {
    BERTH_TRY(ResourceSlice slice, DecodeResourceSlice(text));
    if (slice.published == nullptr) return slice;
    auto kept = std::make_shared<PublishedSlice>(whole_gpus_alone ? WholeGpusOf(*slice.published)
                                                                  : *slice.published);
    shared->Share(*kept);
    slice.published = std::move(kept);
    return slice;
  };
}

// With what it asks for, where Berth may choose its devices.
Result<ResourceClaim> DecodeClaimToChoose(const PaddedText& text) {
  BERTH_TRY(ResourceClaim claim, DecodeResourceClaim(text));
  if (claim.allocated) return claim;
  auto open = DecodeOpenClaim(text);
  if (open && open->obstacle.empty()) {
    claim.asks = std::make_shared<const DeviceClaim>(std::move(open->asks));
  }
  return claim;
}

class DraWatch final : public kube::ClusterExtension {
 public:
  DraWatch(const kube::ExtensionContext& context, const DeviceClaims::Tables& tables, bool chooses)
      : claims_(tables, chooses, context.on_unreadable),
        allocator_({.write = context.write,
                    .mig = tables.offers,
                    .classes = tables.classes,
                    .state = context.state,
                    .claims = claims_,
                    .on_note =
                        [log = context.on_log](bool is_problem, const std::string& text) {
                          log(is_problem, "claim_allocation", text);
                        }}),
        collisions_(context, claims_),
        chooses_(chooses),
        slices_(claims_.slices(), SlicesThatShare(!chooses), kSlices, context.on_unreadable),
        claim_sink_(claims_.claims(),
                    kube::Whole(chooses ? DecodeClaimToChoose : DecodeResourceClaim), kClaims,
                    context.on_unreadable),
        classes_(claims_.classes(), DecodeDeviceClass, kClasses, context.on_unreadable),
        taint_rules_(claims_.taint_rules(), DecodeDeviceTaintRule, kTaintRules,
                     context.on_unreadable) {}

  std::vector<kube::WatchSource> Sources() override {
    const std::vector<std::string> versions = {"v1", "v1beta2", "v1beta1"};
    return {{.kind = {.name = kSlices,
                      .paths = Paths(kSlices, versions),
                      .query = "fieldSelector=spec.driver=" + std::string(kGpuDriver),
                      .optional = true,
                      .await = kube::Await::kList,
                      .why_not_ready = "waiting for the list of resourceslices"},
             .sink = slices_,
             .unreadable = [this] { return slices_.unreadable() + claims_.unknown_pools(); }},
            {.kind = {.name = kClaims,
                      .paths = Paths(kClaims, versions),
                      .optional = true,
                      .await = kube::Await::kList,
                      .why_not_ready = "waiting for the list of resourceclaims"},
             .sink = claim_sink_,
             .unreadable = [this] { return claim_sink_.unreadable() + claims_.unknown(); }},
            // Extended resources came with v1.
            {.kind = {.name = kClasses,
                      .paths = Paths(kClasses, {"v1"}),
                      .optional = true,
                      .why_not_ready = "waiting for the list of deviceclasses"},
             .sink = classes_,
             .unreadable = [this] { return classes_.unreadable(); }},
            {.kind = {.name = kTaintRules,
                      .paths = Paths(kTaintRules, {"v1", "v1beta2", "v1alpha3"}),
                      .optional = true,
                      .why_not_ready = "waiting for the list of devicetaintrules"},
             .sink = taint_rules_,
             .unreadable = [this] { return taint_rules_.unreadable(); }}};
  }

  ClaimAllocator* claim_allocator() override { return &allocator_; }
  void Upkeep() override {
    if (chooses_) collisions_.Look();  // with the rights that choosing needs
  }

  void AddTo(kube::ExtensionStats& stats) const override {
    const DeviceAllocator::Stats allocations = allocator_.stats();
    stats.overlapping_claims += claims_.overlapping();
    stats.claims_allocated += allocations.allocated;
    stats.claims_left += allocations.left;
    stats.claims_lost += allocations.lost;
    stats.claims_taken_back += collisions_.taken_back();
  }

 private:
  DeviceClaims claims_;
  DeviceAllocator allocator_;
  ClaimCollisions collisions_;
  const bool chooses_;
  kube::TableSink<DeviceClaims::Slices> slices_;
  kube::TableSink<DeviceClaims::Claims> claim_sink_;
  kube::TableSink<DeviceClaims::Classes> classes_;
  kube::TableSink<DeviceClaims::TaintRules> taint_rules_;
};

}  // namespace

std::unique_ptr<kube::ClusterExtension> WatchDra(const kube::ExtensionContext& context,
                                                 const DeviceClaims::Tables& tables, bool chooses) {
  return std::make_unique<DraWatch>(context, tables, chooses);
}

}  // namespace berth::dialects
