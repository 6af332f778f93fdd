// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/instaslice/instaslice_json.h"

#include "server/wire/json/strict_json.h"
#include "topology/mig/mig_product.h"

namespace berth::dialects {
namespace {

using wire::Fields;
using wire::Json;

Status ReadSpec(const Json& json, const std::string& path, AllocationClaim& claim) {
  Fields fields(json, path);
  fields.Text("profile", claim.device.profile);
  fields.Text("gpuUUID", claim.device.uuid);
  fields.Text("nodename", claim.node);
  fields.Object("migPlacement", [&claim](const Json& placement, const std::string& at) {
    Fields place(placement, at);
    place.Int("start", 0, kMaxMigUnits - 1, claim.device.start);
    return place.FinishForeign();
  });
  return fields.FinishForeign();
}

// What a device that is held has to say.
Status CheckDevice(const AllocationClaim& claim) {
  if (claim.node.empty()) return Invalid("spec.nodename: want a node, got none");
  if (claim.device.uuid.empty()) return Invalid("spec.gpuUUID: want a UUID, got none");
  if (claim.device.start < 0) return Invalid("spec.migPlacement.start: want a number, got none");
  if (auto profile = ParseMigProfile(claim.device.profile); !profile) {
    return tl::unexpected(std::move(profile).error().Within("spec.profile"));
  }
  return {};
}

}  // namespace

Result<AllocationClaim> DecodeAllocationClaim(const PaddedText& text) {
  const Json json = Json::parse(text.view(), nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  AllocationClaim claim;
  std::string state;
  Fields fields(json, "");
  fields.Object("metadata", [&claim](const Json& metadata, const std::string& path) {
    Fields meta(metadata, path);
    meta.Text("namespace", claim.namespace_name);
    meta.Text("name", claim.name);
    return meta.FinishForeign();
  });
  fields.Object("spec", [&claim](const Json& spec, const std::string& path) {
    return ReadSpec(spec, path, claim);
  });
  fields.Object("status", [&state](const Json& status, const std::string& path) {
    Fields of_status(status, path);
    of_status.Text("state", state);
    return of_status.FinishForeign();
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (claim.name.empty()) return Invalid("metadata.name: want a name, got none");
  claim.holds = !state.empty() && state != "staged";
  claim.device.claim = claim.namespace_name + "/" + claim.name;
  claim.device.device = claim.name;
  if (claim.holds) BERTH_TRY_STATUS(CheckDevice(claim));
  return claim;
}

}  // namespace berth::dialects
