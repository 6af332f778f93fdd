// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/claim_json.h"

#include <algorithm>
#include <utility>

#include "server/dialects/dra/dra_json.h"
#include "server/wire/api/lease_json.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/strict_json.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::Json;
using wire::JsonText;
using wire::MicroTime;
using wire::TextOf;

using simdjson::ondemand::array;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

constexpr std::string_view kFinalizer = "resource.kubernetes.io/delete-protection";

constexpr std::string_view kNotOneRequest = "it does not have exactly one request";
constexpr std::string_view kNotOneDevice = "its request is not for exactly one device";
constexpr std::string_view kOtherClass = "its request is not of the class mig.nvidia.com";
constexpr std::string_view kNoProfile =
    "its selectors are not exactly one that names the MIG profile";
constexpr std::string_view kMore =
    "it asks for more than a device: constraints, configuration, "
    "tolerations, capacity";
constexpr std::string_view kDeleting = "it is being deleted";

class ClaimReader {
 public:
  void ReadField(std::string_view key, value content) {
    if (key == "spec") ReadSpec(content.get_object());
    if (key != "status") return;
    ForEachField(content.get_object(), [this](std::string_view name, value) {
      if (name == "allocation") claim_.allocated = true;
    });
  }

  OpenClaim Finish(wire::ObjectMeta meta) {
    if (meta.deleting) claim_.obstacle = kDeleting;
    if (requests_ != 1) Refuse(kNotOneRequest);
    if (!of_mig_class_) Refuse(kOtherClass);
    const auto profile = ParseMigProfile(profile_);
    if (!profile) Refuse(kNoProfile);
    if (profile) claim_.profile = *profile;
    claim_.namespace_name = std::move(meta.namespace_name);
    claim_.name = std::move(meta.name);
    claim_.uid = std::move(meta.uid);
    claim_.resource_version = std::move(meta.resource_version);
    claim_.finalizers = std::move(meta.finalizers);
    return std::move(claim_);
  }

 private:
  void Refuse(std::string_view why) {
    if (claim_.obstacle.empty()) claim_.obstacle = why;
  }

  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value devices) {
      if (key != "devices") return Refuse(kMore);
      ForEachField(devices.get_object(), [this](std::string_view name, value list) {
        if (name != "requests") return Refuse(kMore);
        for (auto request : list.get_array()) ReadRequest(request.get_object());
      });
    });
  }

  void ReadRequest(object request) {
    ++requests_;
    ForEachField(request, [this](std::string_view key, value content) {
      if (key == "name") {
        claim_.request = TextOf(content);
      } else if (key == "exactly") {
        ReadExactly(content.get_object());
      } else {
        Refuse(kNotOneDevice);  // the first available of several
      }
    });
  }

  void ReadExactly(object exactly) {
    ForEachField(exactly, [this](std::string_view key, value content) {
      if (key == "deviceClassName") {
        of_mig_class_ = std::string_view(content.get_string()) == kMigDeviceClass;
      } else if (key == "selectors") {
        ReadSelectors(content.get_array());
      } else if (key == "allocationMode") {
        if (std::string_view(content.get_string()) != "ExactCount") Refuse(kNotOneDevice);
      } else if (key == "count") {
        if (std::int64_t{content.get_int64()} != 1) Refuse(kNotOneDevice);
      } else if (key != "adminAccess" || content.get_bool()) {
        Refuse(kMore);
      }
    });
  }

  void ReadSelectors(array selectors) {
    int count = 0;
    for (auto selector : selectors) {
      if (++count > 1) Refuse(kNoProfile);
      ForEachField(selector.get_object(), [this](std::string_view key, value content) {
        if (key != "cel") return Refuse(kNoProfile);
        ForEachField(content.get_object(), [this](std::string_view name, value expression) {
          if (name == "expression") profile_ = ProfileIn(TextOf(expression));
        });
      });
    }
  }

  OpenClaim claim_;
  int requests_ = 0;
  bool of_mig_class_ = false;
  std::string profile_;
};

// Takes a quoted text from the front; "" where there is none.
std::string TakeQuoted(std::string_view& text) {
  if (text.empty() || (text.front() != '\'' && text.front() != '"')) return "";
  const std::size_t end = text.find(text.front(), 1);
  if (end == std::string_view::npos) return "";
  std::string quoted(text.substr(1, end - 1));
  text.remove_prefix(end + 1);
  return quoted;
}

bool TakeWord(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// The claim that is patched, and no later version of it.
Json MetadataOf(const OpenClaim& claim) {
  return {{"uid", claim.uid}, {"resourceVersion", claim.resource_version}};
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

std::string ProfileIn(std::string_view expression) {
  std::string dense(expression);
  std::erase_if(dense, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  std::string_view text = dense;
  if (!TakeWord(text, "device.attributes[") || TakeQuoted(text) != kGpuDriver ||
      !TakeWord(text, "].profile==")) {
    return "";
  }
  std::string profile = TakeQuoted(text);
  return text.empty() ? profile : "";
}

std::string EncodeFinalizerPatch(const OpenClaim& claim) {
  Json metadata = MetadataOf(claim);
  metadata["finalizers"] = claim.finalizers;
  metadata["finalizers"].push_back(kFinalizer);
  return JsonText({{"metadata", std::move(metadata)}});
}

std::string EncodeAllocationPatch(const OpenClaim& claim, const ClaimAllocation& allocation,
                                  const PodId& pod, WallTime now) {
  const Json device = {{"request", claim.request},
                       {"driver", kGpuDriver},
                       {"pool", allocation.pool},
                       {"device", allocation.device}};
  const Json on_node = {
      {"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({allocation.node})}};
  const Json term = {{"matchFields", Json::array({on_node})}};
  const Json reserved = {{"resource", "pods"}, {"name", pod.name}, {"uid", pod.uid}};
  const Json written = {{"devices", {{"results", Json::array({device})}}},
                        {"nodeSelector", {{"nodeSelectorTerms", Json::array({term})}}},
                        {"allocationTimestamp", MicroTime(now)}};
  return JsonText(
      {{"metadata", MetadataOf(claim)},
       {"status", {{"allocation", written}, {"reservedFor", Json::array({reserved})}}}});
}

}  // namespace berth::dialects
