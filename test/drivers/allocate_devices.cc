// SPDX-License-Identifier: Apache-2.0
//
// What Berth would allocate: one question a line on standard input, one answer a line on standard
// output. A Go test compares them with what Kubernetes' own allocator says
// (test/e2e/allocator_test.go).
//
//   {"node": "n", "slices": [..], "classes": [..], "claims": [..], "allocated": [["pool", "gpu"]],
//    "parts": [["pool", "gpu", {"memory": 4000}]]}
//   {"first": {"end": "found", "results": [[["request", "driver", "pool", "device", part]]]},
//    "best": ..}
//
// Slices, classes and claims are the objects of the API server; results are by claim. Parts are in
// thousandths by capacity, and null of a device that is given whole.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scoring/claims/claim_question.h"
#include "server/dialects/dra/claim_json.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/dialects/dra/slice_json.h"

namespace {

using namespace berth;
using Json = nlohmann::json;

PaddedText Text(const Json& json) { return PaddedText(json.dump()); }

const char* NameOfEnd(SearchEnd end) {
  switch (end) {
    case SearchEnd::kFound:
      return "found";
    case SearchEnd::kNone:
      return "none";
    case SearchEnd::kError:
      return "error";
    case SearchEnd::kUnknown:
      break;
  }
  return "unknown";
}

Json Answer(const NodeQuestion& node, const std::vector<DeviceClaim>& claims,
            const PickedDevices& picked) {
  Json results = Json::array();
  for (std::size_t i = 0; i < claims.size(); ++i) results.push_back(Json::array());
  for (const PickedDevice& each : picked.devices) {
    const auto& source = node.sources[static_cast<std::size_t>(each.device)];
    const DeviceRequest& request = claims[static_cast<std::size_t>(each.of.claim)]
                                       .requests[static_cast<std::size_t>(each.of.request)];
    const DeviceWant& want = request.wants[static_cast<std::size_t>(each.of.option)];
    Json part;
    if (source.device->divisible) {
      const std::vector<std::int64_t> taken = node.question.part(each.of, each.device);
      part = Json::object();
      for (std::size_t i = 0; i < taken.size(); ++i) {
        part[source.device->capacities()[i].name] = taken[i];
      }
    }
    results[static_cast<std::size_t>(each.of.claim)].push_back(
        {NameOf(request, want), source.pool->driver, source.pool->name, source.device->name, part});
  }
  return {{"end", NameOfEnd(picked.end)}, {"results", results}};
}

// Another one than the first fit wherever there is one.
SetRating LastFirst(std::span<const PickedDevice> set) {
  SetRating rating{};
  for (const PickedDevice& each : set) rating[0] -= each.device * each.device;
  return rating;
}

Json Unread(const std::string& why) { return {{"unread", why}}; }

Json Ask(const Json& asked) {
  std::vector<std::shared_ptr<const PublishedSlice>> slices;
  for (const Json& json : asked["slices"]) {
    auto slice = dialects::DecodePublishedSlice(Text(json));
    if (!slice) return Unread(slice.error().message);
    if (slice->node == asked["node"]) {
      slices.push_back(std::make_shared<const PublishedSlice>(*std::move(slice)));
    }
  }
  DeviceClasses classes;
  for (const Json& json : asked["classes"]) {
    std::string problem;
    auto device_class = dialects::DecodeDeviceClass(Text(json), problem);
    if (!device_class) return Unread(device_class.error().message);
    classes.Put(*std::move(device_class));
  }
  std::vector<DeviceClaim> claims;
  for (const Json& json : asked["claims"]) {
    auto claim = dialects::DecodeOpenClaim(Text(json));
    if (!claim) return Unread(claim.error().message);
    if (!claim->obstacle.empty()) return Unread(std::string(claim->obstacle));
    claims.push_back(std::move(claim->asks));
  }
  std::set<DeviceName> taken;
  for (const Json& name : asked["allocated"]) taken.emplace(name[0], name[1]);
  auto question = ClaimQuestion::Make(
      claims, [&classes](std::string_view name) { return classes.Named(name); });
  if (!question) return Unread(question.error().message);
  const DevicePools pools = GatherPools(std::move(slices));
  UsedParts parts;
  for (const Json& part : asked.value("parts", Json::array())) {
    parts[{part[0], part[1]}] = part[2].get<CapacityUses>();
  }
  const NodeQuestion node = question->On(pools, taken, parts);
  return {{"first", Answer(node, claims, FirstFit(node.question))},
          {"best", Answer(node, claims, BestSet(node.question, LastFirst))}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const Json asked = Json::parse(line, nullptr, false);
    std::cout << (asked.is_discarded() ? Unread("no JSON") : Ask(asked)).dump() << std::endl;
  }
}
