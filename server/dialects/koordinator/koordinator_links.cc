// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_dialect.h"

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "server/wire/node/topology_json.h"
#include "topology/links/wiring.h"

namespace berth::dialects {
namespace {

using wire::Fields;
using wire::Json;

constexpr int kMostNumaNodes = 1023;  // Linux' MAX_NUMNODES

struct MinorGpu {
  int minor = -1;
  KoordinatorGpu gpu;
};

Status ReadDevice(const Json& json, const std::string& path, std::vector<MinorGpu>& gpus) {
  Fields fields(json, path);
  std::string type;
  MinorGpu read;
  fields.Text("type", type);
  if (type != "gpu") return fields.FinishForeign();
  fields.Int("minor", 0, kMaxGpus - 1, read.minor);
  fields.Text("id", read.gpu.uuid);
  fields.Bool("health", read.gpu.healthy);
  fields.Object("resources", [&read](const Json& resources, const std::string& at) -> Status {
    BERTH_TRY(const std::int64_t bytes, KoordinatorAmount(resources, at, kKoordinatorMemory));
    read.gpu.memory_mib = bytes >> 20;
    return {};
  });
  fields.Object("topology", [&read](const Json& topology, const std::string& at) {
    Fields place(topology, at);
    place.Int("nodeID", -1, kMostNumaNodes, read.gpu.numa);
    place.Text("pcieID", read.gpu.pcie);
    return place.FinishForeign();
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (read.minor < 0) return Invalid(path + ".minor: want a number, got none");
  gpus.push_back(std::move(read));
  return {};
}

LinkType RelationOf(const KoordinatorGpu& a, const KoordinatorGpu& b) {
  if (a.numa != b.numa) return LinkType::kSys;
  return !a.pcie.empty() && a.pcie == b.pcie ? LinkType::kPxb : LinkType::kNode;
}

// Why these are not the GPUs of the node, in its order; empty = they are.
std::string Mismatch(const NodeSpec& spec, const KoordinatorDevice& device) {
  const std::size_t gpus = spec.gpus.size();
  if (device.gpus.size() != gpus) {
    return "want the node's " + std::to_string(gpus) + " GPUs, got " +
           std::to_string(device.gpus.size());
  }
  for (std::size_t i = 0; i < gpus; ++i) {
    const std::string &wanted = spec.gpus[i].uuid, &got = device.gpus[i].uuid;
    if (wanted.empty() || got.empty() || wanted == got) continue;
    return "spec.devices: want " + wanted.substr(0, 64) + " as minor " + std::to_string(i) +
           ", as the node says, got " + got.substr(0, 64);
  }
  return "";
}

// Takes over how much memory the GPUs have and which are not healthy, beside those that the node
// itself says are not. Some of these may be missing from the counts of a device plugin.
void TakeState(const KoordinatorDevice& device, NodeSpec& spec) {
  int closed = 0;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    const KoordinatorGpu& said = device.gpus[i];
    if (said.memory_mib > 0) spec.gpus[i].memory_mib = said.memory_mib;
    if (said.healthy || !spec.gpus[i].healthy) continue;
    spec.gpus[i].healthy = false;
    ++closed;
  }
  spec.missing = std::max(spec.missing - closed, 0);
}

constexpr const char* kDevices = "devices";

class KoordinatorWatch final : public kube::ClusterExtension {
 public:
  KoordinatorWatch(const kube::ExtensionContext& context, LinkLibrary& library)
      : links_(context.state, library, context.on_unreadable),
        sink_(links_, kube::Whole(DecodeKoordinatorDevice), kDevices, context.on_unreadable) {}

  std::vector<kube::WatchSource> Sources() override {
    return {{.kind = {.name = kDevices,
                      .paths = kube::ApiPaths("scheduling.koordinator.sh", {"v1alpha1"}, kDevices),
                      .optional = true,
                      .why_not_ready = "waiting for the list of Koordinator's devices"},
             .sink = sink_,
             .unreadable = [this] { return sink_.unreadable() + links_.unfit(); }}};
  }

  kube::PublishNodes DecorateNodes(kube::PublishNodes next) override {
    return [this, next = std::move(next)](std::vector<ClusterEvent> events) {
      links_.Publish(std::move(events), next);
    };
  }

 private:
  KoordinatorLinks links_;
  kube::TableSink<KoordinatorLinks> sink_;
};

}  // namespace

Result<std::int64_t> KoordinatorAmount(const Json& resources, const std::string& path,
                                       std::string_view resource) {
  const auto found = resources.find(std::string(resource));
  if (found == resources.end()) return 0;
  const auto read = Quantity::Parse(found->is_string() ? found->get<std::string>() : found->dump());
  const std::string place = path + "." + std::string(resource);
  if (!read) return tl::unexpected(Error(read.error()).Within(place));
  if (read->Value() < 0) return Invalid(place + ": want 0 or more, got " + found->dump());
  return read->Value();
}

Result<KoordinatorDevice> DecodeKoordinatorDevice(const PaddedText& text) {
  const Json json = Json::parse(text.view(), nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  KoordinatorDevice device;
  std::vector<MinorGpu> gpus;
  Fields fields(json, "");
  fields.Object("metadata", [&device](const Json& metadata, const std::string& path) {
    Fields meta(metadata, path);
    meta.Text("name", device.name);
    return meta.FinishForeign();
  });
  fields.Object("spec", [&gpus](const Json& spec, const std::string& path) {
    Fields of_spec(spec, path);
    of_spec.List("devices", [&gpus](const Json& listed, const std::string& at) {
      return ReadDevice(listed, at, gpus);
    });
    return of_spec.FinishForeign();
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (device.name.empty()) return Invalid("metadata.name: want a name, got none");
  std::ranges::sort(gpus, {}, &MinorGpu::minor);
  for (MinorGpu& read : gpus) {
    const int wanted = static_cast<int>(device.gpus.size());
    if (read.minor != wanted) {
      return Invalid("spec.devices: want GPUs with the minors 0, 1, 2, ... each once, got " +
                     std::to_string(read.minor) + " in place of " + std::to_string(wanted));
    }
    device.gpus.push_back(std::move(read.gpu));
  }
  return device;
}

std::optional<LinkMatrix> LinksOfKoordinator(const KoordinatorDevice& device,
                                             std::string_view product) {
  const auto is_lost = [](const KoordinatorGpu& gpu) { return gpu.numa < 0; };
  if (device.gpus.empty() || std::ranges::any_of(device.gpus, is_lost)) return std::nullopt;
  const int count = static_cast<int>(device.gpus.size());
  auto matrix = LinksOfProduct(product, count);
  if (!matrix) {
    std::vector<std::string> names;
    for (int gpu = 0; gpu < count; ++gpu) names.push_back("GPU" + std::to_string(gpu));
    auto made = MakeLinkMatrix(std::move(names), {});
    if (!made) return std::nullopt;  // there are 1..kMaxGpus
    matrix = *std::move(made);
  }
  for (int a = 0; a < count; ++a) {
    const KoordinatorGpu& gpu = device.gpus[static_cast<std::size_t>(a)];
    matrix->numa_affinity[static_cast<std::size_t>(a)] = std::to_string(gpu.numa);
    for (int b = 0; b < count; ++b) {
      if (a == b) continue;
      matrix->link(a, b).pcie = RelationOf(gpu, device.gpus[static_cast<std::size_t>(b)]);
    }
  }
  return matrix;
}

void KoordinatorLinks::Publish(std::vector<ClusterEvent> events, const kube::PublishNodes& next) {
  const MutexLock lock(mutex_);
  for (ClusterEvent& event : events) {
    if (auto* const node = std::get_if<NodeUpserted>(&event)) {
      named_.erase(node->spec.name);
      Read(node->spec);
      Relink(node->spec);
    }
    if (auto* const node = std::get_if<NodeRemoved>(&event)) {
      named_.erase(node->name);
      offers_.erase(node->name);
      unfit_.Remove(node->name);
    }
  }
  next(std::move(events));
}

void KoordinatorLinks::Put(Object device) {
  const MutexLock lock(mutex_);
  const std::string name = device.name;
  const auto known = devices_.find(name);
  if (known != devices_.end() && known->second == device) return;  // its conditions, mostly
  devices_.insert_or_assign(name, std::move(device));
  RelinkNodes({name});
}

void KoordinatorLinks::Remove(std::string_view, std::string_view name) {
  const MutexLock lock(mutex_);
  const auto known = devices_.find(name);
  if (known == devices_.end()) return;
  devices_.erase(known);
  RelinkNodes({std::string(name)});
}

void KoordinatorLinks::Reset(std::vector<Object> devices) {
  const MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, device] : devices_) names.push_back(name);
  devices_.clear();
  for (Object& device : devices) {
    names.push_back(device.name);
    devices_.insert_or_assign(device.name, std::move(device));
  }
  RelinkNodes(names);
}

void KoordinatorLinks::RelinkNodes(const std::vector<std::string>& names) {
  const auto snapshot = state_.Current();
  std::vector<ClusterEvent> events;
  for (const std::string& name : names) {
    const NodeIndex index = snapshot->names().Find(name);
    if (index == kNoNode) continue;
    NodeSpec spec = snapshot->node(index).spec();
    Relink(spec);
    events.emplace_back(NodeUpserted{std::move(spec)});
  }
  // The specs are those of the state, with links of as many GPUs: they are valid.
  if (!events.empty()) (void)state_.Apply(std::move(events));
}

void KoordinatorLinks::NameGpus(NodeSpec& spec) {
  if (named_.erase(spec.name) > 0) {
    for (GpuSpec& gpu : spec.gpus) gpu.uuid.clear();
  }
  const auto found = devices_.find(spec.name);
  if (found == devices_.end() || found->second.gpus.size() != spec.gpus.size()) return;
  if (std::ranges::any_of(spec.gpus, [](const GpuSpec& gpu) { return !gpu.uuid.empty(); })) return;
  for (std::size_t i = 0; i < spec.gpus.size(); ++i) {
    spec.gpus[i].uuid = found->second.gpus[i].uuid;
  }
  named_.insert(spec.name);
}

void KoordinatorLinks::Read(const NodeSpec& spec) {
  offers_.erase(spec.name);
  if (spec.share_agent != kKoordinatorAgent) return;
  offers_.insert_or_assign(spec.name, Offer{spec.gpus, spec.missing, spec.links});
}

void KoordinatorLinks::Serve(NodeSpec& spec) {
  const auto offer = offers_.find(spec.name);
  if (offer == offers_.end()) return;
  spec.gpus = offer->second.gpus;
  spec.missing = offer->second.missing;
  spec.links = offer->second.links;
  const bool counts = spec.gpu_resource == kKoordinatorCore;  // nobody else does
  const auto device = devices_.find(spec.name);
  const std::string wrong = device == devices_.end() || (counts && !device->second.gpus.empty())
                                ? ""
                                : Mismatch(spec, device->second);
  const bool served = device != devices_.end() && !device->second.gpus.empty() && wrong.empty();
  spec.agent_lacks = served ? "" : kKoordinatorNoDevice;
  if (!wrong.empty()) spec.agent_lacks = "Koordinator's Device: " + wrong + "; read koordlet's log";
  spec.share_agent = served ? kKoordinatorAgent : std::string_view();
  spec.agent_serves_all = served;
  if (!served) {
    for (GpuSpec& gpu : spec.gpus) gpu.healthy = gpu.healthy && !counts;
    return;
  }
  if (spec.gpus.size() != device->second.gpus.size()) {
    spec.gpus.resize(device->second.gpus.size());
    spec.links = wire::CatalogueLinks(spec.gpu_model, static_cast<int>(spec.gpus.size()), library_);
  }
  TakeState(device->second, spec);
}

void KoordinatorLinks::Relink(NodeSpec& spec) {
  Serve(spec);
  NameGpus(spec);
  unfit_.Remove(spec.name);
  const bool has_better = spec.links.source() > LinkSource::kObject;
  if (has_better && !offers_.contains(spec.name)) return;
  const bool ours = spec.links.source() == LinkSource::kObject;
  const auto found = devices_.find(spec.name);
  if ((found == devices_.end() && !ours) || spec.gpus.empty()) return;
  const auto gpus = static_cast<int>(spec.gpus.size());
  std::optional<LinkMatrix> links;
  if (found != devices_.end()) {
    const std::string wrong = Mismatch(spec, found->second);
    if (!wrong.empty()) unfit_.Add(spec.name, wrong);
    if (wrong.empty()) links = LinksOfKoordinator(found->second, spec.gpu_model);
  }
  if (has_better) return;
  if (links) {
    spec.links = library_.LinksOf(*std::move(links), spec.gpu_model,
                                  {LinkSource::kObject, std::string(kKoordinatorSource)});
    return;
  }
  spec.links = wire::CatalogueLinks(spec.gpu_model, gpus, library_);
}

std::unique_ptr<kube::ClusterExtension> WatchKoordinator(const kube::ExtensionContext& context,
                                                         LinkLibrary& library) {
  return std::make_unique<KoordinatorWatch>(context, library);
}

}  // namespace berth::dialects
