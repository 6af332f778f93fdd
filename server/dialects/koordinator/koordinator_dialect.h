// SPDX-License-Identifier: Apache-2.0
//
// Koordinator: GPUs that its koordlet gives to containers, in parts too.
//
//   node  koordinator.sh/gpu-core     100 for each healthy GPU; koord-manager writes it by the
//         koordinator.sh/gpu-memory   Device of the node's name (below), the memory of all of
//                                     them in bytes
//   pod   resources koordinator.sh/gpu, gpu-core, gpu-memory, ... (below)
//   pod   what its scheduler writes, and Berth with the Binding:
//         scheduling.koordinator.sh/device-allocated
//           {"gpu": [{"minor": 0, "id": "GPU-a",
//                     "resources": {"koordinator.sh/gpu-core": "50",
//                                   "koordinator.sh/gpu-memory": "40960Mi",
//                                   "koordinator.sh/gpu-memory-ratio": "50"}}], "rdma": ..}
//         scheduling.koordinator.sh/gpu-minors      0,1
//         scheduling.koordinator.sh/bind-timestamp  unix nanoseconds
//
// Core and ratio are percent of a GPU; the minor is taken as the index, as of its Devices. The core
// is left out where none was asked for. koordlet reads the annotation of the very pod and sets
// NVIDIA_VISIBLE_DEVICES of all its containers, whatever they ask for: so pods with nvidia.com/gpu
// and with Berth's shares get theirs too. It keeps a pod to its part if the pod has the label
// koordinator.sh/gpu-isolation-provider: HAMi-core, and nobody else: the node isolates nothing.
//
// Nodes with GPUs of other vendors than NVIDIA are Koordinator's scheduler's: their device plugins
// want more. (koordinator at 0cbedd6, apis/extension/device_share.go; 39d7596,
// pkg/koordlet/runtimehooks/hooks/gpu/gpu.go; 09cc5f5,
// pkg/scheduler/plugins/deviceshare/device_plugin_adapter.go; 1e368c2,
// pkg/slo-controller/noderesource/plugins/gpudeviceresource/plugin.go.)
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/node/mig_library.h"
#include "cluster/state/cluster_state.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_parts.h"
#include "server/wire/pod/recorded_devices.h"
#include "topology/links/link_matrix.h"

namespace berth::dialects {

// KoordinatorLinks: puts nodes and Koordinator's Devices together. A Device overrides the links
// that the product catalogue has for the node of its name (server/wire/node/topology_json.h has the
// precedence), and names the UUIDs of the GPUs where the node does not. Node and Device may come
// in either order; when the Device is deleted, the catalogue's links return.
//
// A node that has Koordinator's resources (koordinator_dialect.h) is served by its agent while a
// Device of as many GPUs, with the node's UUIDs, is there. The Device then says how much memory
// each GPU has, and which are not healthy. Where the GPUs are counted by these resources alone, all
// is as the Device says, and without one no GPU is given.

// The JSON of a Device (scheduling.koordinator.sh/v1alpha1) of Koordinator: the GPUs of the node of
// the same name, and where they are plugged in.
//
//   {"metadata": {"name": "n1"}, "spec": {"devices": [
//     {"type": "gpu", "id": "GPU-..", "minor": 0, "health": true,
//      "resources": {"koordinator.sh/gpu-memory": "81920Mi", ...},
//      "topology": {"socketID": 0, "nodeID": 0, "pcieID": "pci0000:16"}}, ...]}}
//
// It does not say how many NVLinks two GPUs have (the annotation gpu-partitions names sets that
// Koordinator may give, and the bandwidth of their ring): those are taken from the product
// catalogue, where it has the machine. A machine that has NVLinks and is not in it counts as one
// without. (koordinator at 28f6cd8, apis/scheduling/v1alpha1/device_types.go.)

struct KoordinatorGpu {
  std::string uuid;  // empty = not said
  int numa = -1;     // -1 = not known
  std::string pcie;  // empty = not known
  bool healthy = false;
  std::int64_t memory_mib = 0;  // 0 = not known
  friend bool operator==(const KoordinatorGpu&, const KoordinatorGpu&) = default;
};

struct KoordinatorDevice {
  std::string namespace_name;        // always empty
  std::string name;                  // of the node
  std::vector<KoordinatorGpu> gpus;  // by minor, which is taken as the index
  friend bool operator==(const KoordinatorDevice&, const KoordinatorDevice&) = default;
};

// The amount of one resource, 0 where it is not there. Kubernetes reads a quantity from a text or a
// number. Error: kInvalidArgument for what is none, or below 0, with the path.
Result<std::int64_t> KoordinatorAmount(const wire::Json& resources, const std::string& path,
                                       std::string_view resource);

// Error: kInvalidArgument with the path of the field, also where the minors are not 0, 1, 2, ...
Result<KoordinatorDevice> DecodeKoordinatorDevice(const PaddedText& text);

// The links of these GPUs: PXB under one PCIe switch, NODE in one NUMA node, SYS else; NVLinks of
// the catalogue. nullopt where there are none, or of one it is not known where it is.
std::optional<LinkMatrix> LinksOfKoordinator(const KoordinatorDevice& device,
                                             std::string_view product);

inline constexpr std::string_view kKoordinatorSource = "koordinator Device";

// Any thread may call any function.
class KoordinatorLinks {
 public:
  using Object = KoordinatorDevice;  // a table as a TableSink wants it

  // References: they outlive the object.
  KoordinatorLinks(ClusterState& state, LinkLibrary& library, kube::OnUnreadable report)
      : state_(state), library_(library), unfit_("devices", std::move(report)) {}

  // Publishes what the sink of nodes has, with the links that the nodes have now. Requires: valid
  // specs.
  void Publish(std::vector<ClusterEvent> events, const kube::PublishNodes& next)
      BERTH_EXCLUDES(mutex_);

  void Put(Object device) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  void Reset(std::vector<Object> devices) BERTH_EXCLUDES(mutex_);

  // Devices with other GPUs than their node has.
  [[nodiscard]] std::size_t unfit() const { return unfit_.count(); }

 private:
  // What a node says that has Koordinator's resources, without its Device.
  struct Offer {
    std::vector<GpuSpec> gpus;
    int missing = 0;
    GpuLinks links;
  };

  // Takes down what the node says, as decoded.
  void Read(const NodeSpec& spec) BERTH_REQUIRES(mutex_);
  // Who serves its GPUs, which of them, and how large they are.
  void Serve(NodeSpec& spec) BERTH_REQUIRES(mutex_);
  void NameGpus(NodeSpec& spec) BERTH_REQUIRES(mutex_);
  void Relink(NodeSpec& spec) BERTH_REQUIRES(mutex_);
  // The nodes of these names that are there, with the links that they have now.
  void RelinkNodes(const std::vector<std::string>& names) BERTH_REQUIRES(mutex_);

  ClusterState& state_;
  LinkLibrary& library_;
  kube::UnreadableObjects unfit_;  // changed under the mutex
  Mutex mutex_;
  std::map<std::string, Object, std::less<>> devices_ BERTH_GUARDED_BY(mutex_);  // by node
  std::map<std::string, Offer, std::less<>> offers_ BERTH_GUARDED_BY(mutex_);    // by node
  // Nodes whose UUIDs, as the state has them, are those of a Device.
  std::set<std::string, std::less<>> named_ BERTH_GUARDED_BY(mutex_);
};

// Koordinator: its Devices are watched, and say the links of nodes that do not publish better ones.

// library outlives the extension.
std::unique_ptr<kube::ClusterExtension> WatchKoordinator(const kube::ExtensionContext& context,
                                                         LinkLibrary& library);

// How pods ask for GPUs in Koordinator's words. The containers' amounts add up first, and the sum
// is read:
//
//   koordinator.sh/gpu: P                                P percent of compute and memory, alone
//   koordinator.sh/gpu-memory-ratio: P                   P percent of the memory
//   koordinator.sh/gpu-memory: M                         M bytes of the memory of one GPU
//   koordinator.sh/gpu-core: C  beside one of these two  C percent of the compute
//   koordinator.sh/gpu.shared: N  beside them            all of it on N GPUs, an Nth on each
//
// Without gpu.shared P is up to 100, a part of one GPU, or N times 100, which are N GPUs. What is
// given:
//
//   100 percent of the memory of each of N GPUs (with as much compute, or without)   whole GPUs
//   other percent of each, or memory, with or without compute                        shares
//
// All containers of a pod have the same GPUs. What Koordinator's scheduler refuses is refused, and
// beyond that percent that are no whole thousandths of each of several GPUs. (koordinator at
// 138d457, pkg/scheduler/plugins/deviceshare/utils.go and devicehandler_gpu.go.)

// NodeSpec::agent_lacks of a node without its Device.
inline constexpr std::string_view kKoordinatorNoDevice =
    "has no Device of Koordinator: run koordlet there with its gate Accelerators";
inline constexpr std::string_view kKoordinatorAgent = "koordinator";

inline constexpr std::string_view kKoordinatorGpu = "koordinator.sh/gpu";
inline constexpr std::string_view kKoordinatorCore = "koordinator.sh/gpu-core";
inline constexpr std::string_view kKoordinatorMemory = "koordinator.sh/gpu-memory";
inline constexpr std::string_view kKoordinatorRatio = "koordinator.sh/gpu-memory-ratio";
inline constexpr std::string_view kKoordinatorShared = "koordinator.sh/gpu.shared";
inline constexpr std::array kKoordinatorResources = {
    kKoordinatorGpu, kKoordinatorCore, kKoordinatorMemory, kKoordinatorRatio, kKoordinatorShared};

// The annotations by which its users choose GPUs: Berth does not read them.
inline constexpr std::array<std::string_view, 3> kKoordinatorChoices = {
    "scheduling.koordinator.sh/device-allocate-hint",
    "scheduling.koordinator.sh/device-joint-allocate",
    "scheduling.koordinator.sh/gpu-partition-spec"};

// Adds so much of one of the resources. Requires: it is one of them.
void AddKoordinatorAsk(std::string_view resource, std::int64_t amount, wire::ResourceAsk& ask);

// Makes GPUs, or shares of them, of what the containers ask for. Error: kInvalidArgument with the
// resource.
Status FindKoordinatorShares(wire::PodParts& parts);

// What the containers ask for together, before FindKoordinatorShares, in whose words ever: koordlet
// serves them all. Also where Koordinator's scheduler would refuse it.
wire::RecordedAsk KoordinatorAskOf(const wire::PodParts& asked);

// Error: kInvalidArgument with the annotation.
Status RefuseKoordinatorChoices(const wire::PodParts& parts);

std::unique_ptr<const wire::Dialect> MakeKoordinator();

}  // namespace berth::dialects
