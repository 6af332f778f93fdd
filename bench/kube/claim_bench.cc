// SPDX-License-Identifier: Apache-2.0
#include "bench/kube/claim_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/kube/measuring_sink.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/state/cluster_state.h"
#include "server/dialects/dra/dra_watch.h"

namespace berth::kube_bench {
namespace {

using Json = nlohmann::json;

constexpr int kNodeGpus = 8;
constexpr const char* kDriver = "gpu.nvidia.com";

// What an H100 can be cut into: profile, memory slices, starts.
struct Profile {
  const char* name;
  int size;
  std::vector<int> starts;
};
const std::vector<Profile> kProfiles = {{"1g.10gb", 1, {0, 1, 2, 3, 4, 5, 6}},
                                        {"1g.10gb+me", 1, {0, 1, 2, 3, 4, 5, 6}},
                                        {"1g.20gb", 2, {0, 2, 4, 6}},
                                        {"2g.20gb", 2, {0, 2, 4}},
                                        {"3g.40gb", 4, {0, 4}},
                                        {"4g.40gb", 4, {0}},
                                        {"7g.80gb", 8, {0}}};

Json Text(const std::string& text) { return {{"string", text}}; }

// Attributes and capacities as NVIDIA's driver publishes them (k8s-dra-driver-gpu v25.8,
// deviceinfo.go).
Json DeviceJson(const std::string& name, const std::string& type, const std::string& uuid, int gpu,
                int start, int size) {
  Json attributes = {{"type", Text(type)},
                     {type == "gpu" ? "uuid" : "parentUUID", Text(uuid)},
                     {"productName", Text("NVIDIA H100 80GB HBM3")},
                     {"brand", Text("Nvidia")},
                     {"architecture", Text("Hopper")},
                     {"cudaComputeCapability", {{"version", "9.0.0"}}},
                     {"driverVersion", {{"version", "580.95.5"}}},
                     {"cudaDriverVersion", {{"version", "13.0.0"}}},
                     {"numaNode", {{"int", 2 * gpu / kNodeGpus}}},
                     {"pciBusID", Text("0000:" + std::to_string(10 + gpu) + ":00.0")},
                     {"resource.kubernetes.io/pcieRoot", Text("pci0000:" + std::to_string(gpu))}};
  Json capacity = {{"memory", {{"value", std::to_string(10 * size) + "Gi"}}},
                   {"multiprocessors", {{"value", std::to_string(16 * size)}}},
                   {"copyEngines", {{"value", std::to_string(size)}}},
                   {"decoders", {{"value", std::to_string(size)}}},
                   {"encoders", {{"value", "0"}}},
                   {"jpegEngines", {{"value", std::to_string(size)}}},
                   {"ofaEngines", {{"value", "0"}}}};
  Json counters = capacity;
  for (int slice = start; slice < start + size; ++slice) {
    counters["memory-slice-" + std::to_string(slice)] = {{"value", "1"}};
  }
  const std::string set = "gpu-" + std::to_string(gpu) + "-counter-set";
  return {{"name", name},
          {"attributes", std::move(attributes)},
          {"capacity", std::move(capacity)},
          {"consumesCounters", Json::array({{{"counterSet", set}, {"counters", counters}}})}};
}

std::string SliceText(const std::string& node, const std::string& name, int slices, Json more) {
  more["driver"] = kDriver;
  more["nodeName"] = node;
  more["pool"] = {{"name", node}, {"generation", 1}, {"resourceSliceCount", slices}};
  return Json{{"kind", "ResourceSlice"}, {"metadata", {{"name", name}}}, {"spec", std::move(more)}}
      .dump();
}

std::vector<std::string> SlicesOf(const std::string& node, bool partitioned) {
  std::vector<std::string> slices;
  Json sets = Json::array();
  for (int gpu = 0; gpu < kNodeGpus; ++gpu) {
    const std::string name = "gpu-" + std::to_string(gpu);
    const std::string uuid = "GPU-" + node + "-4c1a9d52-7b0e-" + std::to_string(1000 + gpu);
    Json devices = Json::array({DeviceJson(name, "gpu", uuid, gpu, 0, 8)});
    Json all = devices[0]["consumesCounters"][0]["counters"];
    for (const Profile& profile : kProfiles) {
      if (!partitioned) break;
      for (const int start : profile.starts) {
        Json device = DeviceJson(name + "-mig-" + profile.name + "-" + std::to_string(start), "mig",
                                 uuid, gpu, start, profile.size);
        device["attributes"]["profile"] = Text(profile.name);
        devices.push_back(std::move(device));
      }
    }
    sets.push_back({{"name", name + "-counter-set"}, {"counters", std::move(all)}});
    slices.push_back(
        SliceText(node, node + "-" + name, kNodeGpus + 1, {{"devices", std::move(devices)}}));
  }
  slices.push_back(SliceText(node, node + "-sets", kNodeGpus + 1, {{"sharedCounters", sets}}));
  return slices;
}

// The claims of an API server; what is written is shown to the watch at once.
class Claims final : public kube::ApiClient {
 public:
  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override {
    std::string path = request.path;
    if (path.ends_with("/status")) path.resize(path.size() - std::string("/status").size());
    const std::string name = path.substr(path.rfind('/') + 1);
    Json& claim = claims_.at(name);
    if (request.method == "PATCH") {
      claim.merge_patch(Json::parse(request.body));
      claim["metadata"]["resourceVersion"] = std::to_string(++version_);
      watch_->Changed(PaddedText(claim.dump()));
    }
    return kube::ApiResponse{200, claim.dump(), {}};
  }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams here");
  }
  void Add(const std::string& name, int count) {
    const Json exactly = {
        {"deviceClassName", "gpu.nvidia.com"}, {"allocationMode", "ExactCount"}, {"count", count}};
    Json& claim = claims_[name];
    claim = {
        {"kind", "ResourceClaim"},
        {"metadata",
         {{"name", name}, {"namespace", "ns"}, {"uid", "u-" + name}, {"resourceVersion", "1"}}},
        {"spec",
         {{"devices", {{"requests", Json::array({{{"name", "gpus"}, {"exactly", exactly}}})}}}}}};
    watch_->Changed(PaddedText(claim.dump()));
  }
  void ShowTo(kube::ObjectSink& watch) { watch_ = &watch; }

 private:
  std::map<std::string, Json> claims_;
  kube::ObjectSink* watch_ = nullptr;
  int version_ = 1;
};

class Open final : public kube::WriteFence {
  [[nodiscard]] Instant WritableUntil() const override { return Instant::max(); }
};

void PutClass(kube::ObjectSink& classes) {
  const Json selector = {{"cel",
                          {{"expression",
                            "device.driver == 'gpu.nvidia.com' && "
                            "device.attributes['gpu.nvidia.com'].type == 'gpu'"}}}};
  classes.Changed(PaddedText(Json{{"kind", "DeviceClass"},
                                  {"metadata", {{"name", "gpu.nvidia.com"}}},
                                  {"spec", {{"selectors", Json::array({selector})}}}}
                                 .dump()));
}

}  // namespace

int MeasureClaims(const ClaimSize& size) {
  ClusterState state;
  MigOffers offers;
  DeviceClasses classes;
  DeviceOffers devices;
  OpenClaims open;
  Claims api;
  Open fence;
  const SystemClock clock;
  const kube::ExtensionContext context{
      .write = {.client = api, .clock = clock, .fence = fence, .sleep = [](Duration) {}},
      .state = state,
      .on_unreadable =
          [](std::string_view, std::string_view object, const std::string& why) {
            std::fprintf(stderr, "%s: %s\n", std::string(object).c_str(), why.c_str());
          },
      .on_log =
          [](bool, std::string_view, std::string_view text) {
            std::fprintf(stderr, "%s\n", std::string(text).c_str());
          }};
  const auto dra = dialects::WatchDra(context, {state, offers, classes, devices, open}, true);
  const std::vector<kube::WatchSource> sources = dra->Sources();
  std::vector<std::string> names;
  std::vector<ClusterEvent> events;
  for (std::size_t i = 0; i < size.nodes; ++i) {
    names.push_back("node-" + std::to_string(10'000 + i));
    NodeSpec spec;
    spec.name = names.back();
    spec.cpu_milli = 128'000;
    events.emplace_back(NodeUpserted{spec});
  }
  if (!state.Apply(events)) return 1;
  PutClass(sources[2].sink);
  const Usage before = Usage::Now();
  std::size_t bytes = 0;
  sources[0].sink.ListBegins();
  for (const std::string& node : names) {
    for (std::string& text : SlicesOf(node, size.partitioned)) {
      bytes += text.size();
      sources[0].sink.Listed(PaddedText(std::move(text)));
    }
  }
  sources[0].sink.ListEnds();
  const Usage after = Usage::Now();
  std::printf("%zu nodes, %d devices each: %.0f MiB of slices take %.0f MiB, %.0f at most\n",
              size.nodes, size.partitioned ? kNodeGpus * 26 : kNodeGpus,
              static_cast<double>(bytes) / (1 << 20), after.rss_mib - before.rss_mib,
              after.peak_mib);
  sources[1].sink.ListBegins();
  sources[1].sink.ListEnds();
  api.ShowTo(sources[1].sink);
  std::vector<double> millis;
  for (int pod = 0; pod < size.pods; ++pod) {
    const std::string name = "claim-" + std::to_string(pod);
    api.Add(name, 1 + pod % 4);
    const auto start = std::chrono::steady_clock::now();
    const bool allocated =
        dra->claim_allocator()->Allocate({"uid-" + name, "ns", name}, std::vector{name}, names, {});
    const auto end = std::chrono::steady_clock::now();
    if (!allocated) return 1;
    millis.push_back(std::chrono::duration<double, std::milli>(end - start).count());
  }
  std::ranges::sort(millis);
  const auto at = [&millis](double part) {
    return millis[std::min(millis.size() - 1,
                           static_cast<std::size_t>(part * static_cast<double>(millis.size())))];
  };
  std::printf("choosing for %d claims: p50 %.2f ms, p99 %.2f ms, max %.2f ms\n", size.pods, at(0.5),
              at(0.99), millis.back());
  return 0;
}

}  // namespace berth::kube_bench
