// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/claim_json.h"

#include <algorithm>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>
#include <utility>

#include "base/quantity.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/dialects/dra/dra_json.h"
#include "server/dialects/dra/slice_json.h"
#include "server/wire/api/api_json.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/selector_json.h"
#include "server/wire/json/strict_json.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::Json;
using wire::JsonText;
using wire::MicroTime;
using wire::TextOf;
using wire::WithField;

constexpr std::string_view kFinalizer = "resource.kubernetes.io/delete-protection";

constexpr std::string_view kNoRequests = "it has no requests";
constexpr std::string_view kForAdministration = "it asks for access for administration";
constexpr std::string_view kUnread = "it has a field or a value that Berth does not know";
constexpr std::string_view kTooLarge = "it has more of something than Kubernetes admits";
constexpr std::string_view kDeleting = "it is being deleted";

class ClaimReader {
 public:
  void ReadField(std::string_view key, value content) {
    if (key == "spec") ReadSpec(content.get_object());
    if (key != "status") return;
    WithField(content.get_object(), "allocation", [this](value) { claim_.allocated = true; });
  }

  OpenClaim Finish(wire::ObjectMeta meta) {
    if (meta.deleting) claim_.obstacle = kDeleting;
    if (claim_.asks.requests.empty()) Refuse(kNoRequests);
    claim_.takes_nothing = !takes_ && !unread_;
    claim_.namespace_name = std::move(meta.namespace_name);
    claim_.name = std::move(meta.name);
    claim_.uid = std::move(meta.uid);
    claim_.resource_version = std::move(meta.resource_version);
    claim_.finalizers = std::move(meta.finalizers);
    return std::move(claim_);
  }

 private:
  void Refuse(std::string_view why) {
    if (why != kForAdministration) unread_ = true;
    if (claim_.obstacle.empty()) claim_.obstacle = why;
  }

  // Calls read(object) for each of the list, the first `most` of them.
  template <class Read>
  void ForEachItem(array list, std::size_t most, Read read) {
    std::size_t count = 0;
    for (auto item : list) {
      if (++count > most) return Refuse(kTooLarge);
      read(item.get_object());
    }
  }

  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value devices) {
      if (key != "devices") return Refuse(kUnread);
      ForEachField(devices.get_object(), [this](std::string_view name, value list) {
        if (name == "requests") {
          ForEachItem(list.get_array(), kMostClaimRequests, [this](object it) { ReadRequest(it); });
        } else if (name == "constraints") {
          ForEachItem(list.get_array(), kMostClaimConstraints,
                      [this](object it) { ReadConstraint(it); });
        } else if (name == "config") {
          ForEachItem(list.get_array(), kMostClaimConfigs,
                      [this](object it) { claim_.asks.configs.push_back(ReadDeviceConfig(it)); });
        } else {
          Refuse(kUnread);
        }
      });
    });
  }

  void ReadRequest(object fields) {
    DeviceRequest request;
    ForEachField(fields, [this, &request](std::string_view key, value content) {
      if (key == "name") {
        request.name = TextOf(content);
      } else if (key == "exactly") {
        request.wants.push_back(ReadWant(content.get_object()));
      } else if (key == "firstAvailable") {
        request.first_available = true;
        ForEachItem(content.get_array(), kMostSubrequests,
                    [&](object it) { request.wants.push_back(ReadWant(it)); });
      } else {
        Refuse(kUnread);
      }
    });
    if (request.wants.empty()) Refuse(kUnread);
    claim_.asks.requests.push_back(std::move(request));
  }

  DeviceWant ReadWant(object fields) {
    DeviceWant want;
    bool takes = true;
    ForEachField(fields, [this, &want, &takes](std::string_view key, value content) {
      if (key == "name") {
        want.name = TextOf(content);
      } else if (key == "deviceClassName") {
        want.device_class = TextOf(content);
      } else if (key == "selectors") {
        want.selectors = ReadSelectors(content.get_array(), [this] { Refuse(kUnread); });
        if (want.selectors.size() > kMostSelectors) Refuse(kTooLarge);
      } else if (key == "allocationMode") {
        const std::string mode = TextOf(content);
        want.all = mode == "All";
        if (!want.all && mode != "ExactCount") Refuse(kUnread);
      } else if (key == "count") {
        want.count = content.get_int64();
      } else if (key == "tolerations") {
        ReadDeviceTolerations(content, want);
      } else if (key == "adminAccess") {
        takes = !content.get_bool();
        if (!takes) Refuse(kForAdministration);
      } else if (key == "capacity") {
        ReadCapacity(content.get_object(), want);
      } else {
        Refuse(kUnread);
      }
    });
    if (want.device_class.empty()) Refuse(kUnread);
    takes_ = takes_ || takes;
    return want;
  }

  void ReadCapacity(object fields, DeviceWant& want) {
    ForEachField(fields, [this, &want](std::string_view key, value requests) {
      if (key != "requests") return Refuse(kUnread);
      ForEachField(requests.get_object(), [this, &want](std::string_view name, value amount) {
        const auto much = Quantity::Parse(QuantityText(amount));
        const auto milli = much ? much->Exactly(-3) : std::nullopt;
        if (!milli) return Refuse(kUnread);
        if (want.capacity.size() == kMostCapacities) return Refuse(kTooLarge);
        want.capacity.insert_or_assign(std::string(name), *milli);
      });
    });
  }

  // From a copy: simdjson reads a list once, and its text is needed too.
  void ReadDeviceTolerations(value list, DeviceWant& want) {
    want.tolerations_json = std::string(std::string_view(simdjson::to_json_string(list)));
    const PaddedText copy(want.tolerations_json);
    simdjson::ondemand::parser parser;
    simdjson::ondemand::document document = parser.iterate(wire::ViewOf(copy));
    want.tolerations = wire::ReadTolerations(document.get_array());
    if (want.tolerations.size() > kMostDeviceTolerations) Refuse(kTooLarge);
  }

  void ReadConstraint(object fields) {
    DeviceConstraint constraint;
    ForEachField(fields, [this, &constraint](std::string_view key, value content) {
      if (key == "requests") {
        constraint.requests = ReadTexts(content.get_array());
      } else if (key == "matchAttribute" || key == "distinctAttribute") {
        constraint.attribute = TextOf(content);
        constraint.distinct = key == "distinctAttribute";
      } else {
        Refuse(kUnread);
      }
    });
    if (constraint.attribute.empty()) Refuse(kUnread);
    claim_.asks.constraints.push_back(std::move(constraint));
  }

  OpenClaim claim_;
  bool takes_ = false;   // by some request that was read, for the claim alone
  bool unread_ = false;  // there is something that may say more
};

// The claim that is patched, and no later version of it.
Json MetadataOf(const OpenClaim& claim) {
  return {{"uid", claim.uid}, {"resourceVersion", claim.resource_version}};
}

// JSON that came from the API server, as it came.
Json Copied(const std::string& text) { return Json::parse(text, nullptr, false); }

std::string QuantityOfMilli(std::int64_t milli) {
  return milli % 1000 == 0 ? std::to_string(milli / 1000) : std::to_string(milli) + "m";
}

Json ResultJson(const AllocationResult& result) {
  Json json = {{"request", NameOf(*result.request, *result.want)},
               {"driver", result.driver},
               {"pool", result.pool},
               {"device", result.device}};
  const std::string& tolerations = result.want->tolerations_json;
  if (!tolerations.empty()) json["tolerations"] = Copied(tolerations);
  if (result.part == nullptr) return json;
  static thread_local boost::uuids::random_generator make_id;
  json["shareID"] = boost::uuids::to_string(make_id());
  for (const auto& [name, milli] : *result.part) {
    json["consumedCapacity"][name] = QuantityOfMilli(milli);
  }
  return json;
}

Json ConfigJson(const AllocationConfig& config) {
  Json json = Copied(config.content);
  json["source"] = config.of_class ? "FromClass" : "FromClaim";
  if (!config.requests.empty()) json["requests"] = config.requests;
  return json;
}

}  // namespace

bool OpenClaim::has_finalizer() const {
  return std::ranges::find(finalizers, kFinalizer) != finalizers.end();
}

Result<OpenClaim> DecodeOpenClaim(const PaddedText& text) {
  ClaimReader reader;
  BERTH_TRY(wire::ObjectMeta meta,
            wire::ReadNamed(text, "ResourceClaim", [&reader](std::string_view key, value content) {
              reader.ReadField(key, content);
            }));
  OpenClaim claim = reader.Finish(std::move(meta));
  if (claim.uid.empty() || claim.resource_version.empty()) {
    return Invalid("want a ResourceClaim with uid and resourceVersion, got uid \"" + claim.uid +
                   "\", resourceVersion \"" + claim.resource_version + "\"");
  }
  return claim;
}

Result<ClaimUse> DecodeClaimUse(const PaddedText& text) {
  ClaimUse use;
  const auto read_user = [&use](object user) {
    PodId pod;
    ForEachField(user, [&pod](std::string_view key, value content) {
      if (key == "name") pod.name = TextOf(content);
      if (key == "uid") pod.uid = TextOf(content);
    });
    if (use.pods.size() < 2) use.pods.push_back(std::move(pod));
  };
  BERTH_TRY(const wire::ObjectMeta meta,
            wire::ReadNamed(text, "ResourceClaim", [&](std::string_view part, value status) {
              if (part != "status") return;
              ForEachField(status.get_object(), [&](std::string_view key, value content) {
                if (key == "reservedFor") {
                  for (auto user : content.get_array()) read_user(user.get_object());
                }
                if (key != "allocation") return;
                WithField(content.get_object(), "allocationTimestamp",
                          [&use](value it) { use.allocated_at = TextOf(it); });
              });
            }));
  for (PodId& pod : use.pods) pod.namespace_name = meta.namespace_name;
  return use;
}

std::string EncodeFinalizerPatch(const OpenClaim& claim) {
  Json metadata = MetadataOf(claim);
  metadata["finalizers"] = claim.finalizers;
  metadata["finalizers"].push_back(kFinalizer);
  return JsonText({{"metadata", std::move(metadata)}});
}

std::string EncodeAllocationPatch(const OpenClaim& claim, const ClaimAllocation& allocation,
                                  const PodId& pod, WallTime now) {
  Json devices = {{"results", Json::array()}};
  for (const AllocationResult& result : allocation.results) {
    devices["results"].push_back(ResultJson(result));
  }
  for (const AllocationConfig& config : allocation.configs) {
    devices["config"].push_back(ConfigJson(config));
  }
  const Json on_node = {
      {"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({allocation.node})}};
  const Json term = {{"matchFields", Json::array({on_node})}};
  const Json reserved = {{"resource", "pods"}, {"name", pod.name}, {"uid", pod.uid}};
  const Json written = {{"devices", std::move(devices)},
                        {"nodeSelector", {{"nodeSelectorTerms", Json::array({term})}}},
                        {"allocationTimestamp", MicroTime(now)}};
  return JsonText(
      {{"metadata", MetadataOf(claim)},
       {"status", {{"allocation", written}, {"reservedFor", Json::array({reserved})}}}});
}

std::string EncodeDeallocationPatch(const OpenClaim& claim) {
  return JsonText({{"metadata", MetadataOf(claim)},
                   {"status", {{"allocation", nullptr}, {"reservedFor", nullptr}}}});
}

}  // namespace berth::dialects
