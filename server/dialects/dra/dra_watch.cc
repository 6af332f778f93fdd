// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/dra_watch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/claims/node_devices.h"
#include "server/dialects/dra/claim_collisions.h"
#include "server/dialects/dra/claim_json.h"
#include "server/dialects/dra/device_allocator.h"
#include "server/dialects/dra/device_claims.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/dialects/dra/dra_json.h"
#include "server/dialects/dra/slice_json.h"
#include "server/dialects/dra/whole_gpus.h"
#include "server/kube/watch/table_sink.h"

namespace berth::dialects {
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
