// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/cluster_loader.h"

#include <algorithm>
#include <cctype>
#include <future>
#include <iterator>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/file.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/watch/cluster_sync.h"
#include "server/wire/file/cluster_file.h"

namespace berth::dialects {
namespace {

// Where there is no API server. Reading a file asks it for nothing.
class NoApiClient final : public kube::ApiClient {
 public:
  Result<kube::ApiResponse> Send(const kube::ApiRequest&) override { return Refuse(); }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Refuse();
  }

 private:
  static Result<kube::ApiResponse> Refuse() {
    return Fail(Errc::kUnavailable, "a cluster of a file has no API server");
  }
};

// "/apis/resource.k8s.io/v1/deviceclasses" for "resource.k8s.io/v1" and "DeviceClass".
std::string PathOf(std::string_view api_version, std::string_view kind) {
  std::string path = "/apis/" + std::string(api_version) + "/";
  for (const char c : kind) {
    path += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return path + (path.ends_with('s') ? "es" : "s");
}

// The sinks of the extensions, to which the objects of a List go in the place of a watch.
class ListedObjects {
 public:
  ListedObjects(ClusterState& state, const ExtensionParts& parts)
      : extensions_(AllExtensions(parts)(
            {.write = {.client = client_, .clock = clock_, .fence = fence_, .sleep = {}},
             .state = state,
             .on_unreadable =
                 [this](std::string_view resource, std::string_view object,
                        const std::string& why) {
                   problems_.push_back(std::string(resource) + " " + std::string(object) + ": " +
                                       why);
                 },
             .on_log = [](bool, std::string_view, std::string_view) {}})),
        publish_(kube::PublishTo(state)) {
    for (const auto& extension : extensions_) {
      publish_ = extension->DecorateNodes(std::move(publish_));
      for (kube::WatchSource& source : extension->Sources()) sources_.push_back(std::move(source));
    }
  }

  // False: nobody watches that kind. object: nullptr asks for no more than that.
  bool Take(std::string_view api_version, std::string_view kind, const PaddedText* object) {
    const std::string path = PathOf(api_version, kind);
    for (kube::WatchSource& source : sources_) {
      const std::vector<std::string>& paths = source.kind.paths;
      if (std::ranges::find(paths, path) == paths.end()) continue;
      if (object == nullptr) return true;
      // Served, and empty at first: each object counts at once, for the pods that are read later.
      if (begun_.insert(&source.sink).second) {
        source.sink.ListBegins();
        source.sink.ListEnds();
      }
      source.sink.Changed(*object);
      return true;
    }
    return false;
  }
  void PublishNodes(std::vector<ClusterEvent> nodes) { publish_(std::move(nodes)); }
  [[nodiscard]] std::vector<std::string> TakeProblems() { return std::exchange(problems_, {}); }

 private:
  NoApiClient client_;
  SystemClock clock_;
  kube::NoFence fence_;
  std::vector<std::string> problems_;
  kube::ClusterExtensions extensions_;
  kube::PublishNodes publish_;
  std::vector<kube::WatchSource> sources_;
  std::set<kube::ObjectSink*> begun_;
};

void Learn(const LoadedParts& parts, const wire::ClusterFile& file) {
  const auto snapshot = parts.state.Current();
  parts.mix.Restore(file.learned ? *file.learned : BoundPods(*snapshot, parts.most_learned));
  if (file.learned) return;
  for (const WaitingPod& waiting : file.waiting) {
    const PodRequest& pod = *waiting.pod;
    if (pod.refusal.empty()) parts.mix.Observe(WithCompute(pod.shape, *snapshot));
  }
}

// Reading takes several times the memory of what is read, in small pieces. Those of a thread of its
// own are in a heap of their own, which is free as a whole in the end: between what stays they
// would leave holes that nothing fits into.
Result<wire::ClusterFile> Decode(std::string text, const LoadedParts& parts,
                                 ListedObjects& objects) {
  const auto decode = [&] {
    return wire::DecodeCluster(
        std::move(text), parts.node_rules, &parts.extensions.pod_rules, &parts.extensions.groups,
        [&objects](std::string_view version, std::string_view kind, const PaddedText& object) {
          return objects.Take(version, kind, &object);
        });
  };
  return std::async(std::launch::async, decode).get();
}

}  // namespace

Result<LoadedCluster> LoadCluster(const std::string& path, const LoadedParts& parts) {
  BERTH_TRY(std::string text, ReadFile(path, kMostClusterFileBytes));
  ListedObjects objects(parts.state, parts.extensions);
  auto file = Decode(parts.slim == nullptr ? std::move(text) : text, parts, objects);
  if (!file) return tl::unexpected(std::move(file).error().Within(path));
  if (parts.slim != nullptr) {
    *parts.slim = wire::SlimCluster(
        std::move(text), parts.extensions.pod_rules.dialects(),
        [&objects](auto version, auto kind) { return objects.Take(version, kind, nullptr); });
  }
  LoadedCluster loaded{.is_list = file->is_list, .problems = {}};
  auto others = file->events.begin();
  if (file->is_list) {
    others = std::stable_partition(others, file->events.end(), [](const ClusterEvent& event) {
      return std::holds_alternative<NodeUpserted>(event);
    });
  }
  for (DeviceClass& of : file->classes) parts.extensions.device_classes.Put(std::move(of));
  objects.PublishNodes({std::move_iterator(file->events.begin()), std::move_iterator(others)});
  BERTH_TRY_STATUS(parts.state.Apply(std::span(others, file->events.end())));
  file->events = {};
  Learn(parts, *file);
  for (WaitingPod& pod : file->waiting) parts.waiting.Put(std::move(pod));
  parts.budgets.Reset(std::move(file->budgets));
  loaded.problems = std::move(file->problems);
  for (const auto& lost : parts.state.PodsOnUnknownNodes()) {
    if (lost->pod.shape.wants_gpu())
      loaded.problems.push_back("pod " + lost->pod.id.full_name() + ": on node " +
                                lost->placement.node +
                                ", which the file does not have, so its GPUs count nowhere");
  }
  for (std::string& problem : objects.TakeProblems()) loaded.problems.push_back(std::move(problem));
  return loaded;
}

}  // namespace berth::dialects
