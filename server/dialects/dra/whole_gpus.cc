// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/whole_gpus.h"

#include <algorithm>
#include <optional>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "server/wire/node/topology_json.h"
#include "topology/links/wiring.h"
#include "topology/mig/mig_product.h"

namespace berth::dialects {
namespace {

// Of the selectors of one class on one node: some 10 ms.
constexpr std::uint64_t kMostCostOfNode = 1'000'000;
constexpr std::int64_t kMibBytes = 1 << 20;

std::int64_t MemoryMib(const cel::Device& device) {
  for (const auto& domain : device.capacity()) {
    if (domain.name != kGpuDriver) continue;
    for (const auto& entry : domain.entries) {
      if (entry->id == "memory") return entry->value.AsInteger().value_or(0) / kMibBytes;
    }
  }
  return 0;
}

// A device, as it is published.
struct FoundDevice {
  const PublishedDevice* said = nullptr;
  bool is_gpu = false;   // a whole one, with a UUID
  bool is_open = false;  // for claims without tolerations
  int gpu = -1;          // its index among those that are found
};

// Of usable pools first: what is not usable is not tried.
std::vector<FoundDevice> FoundDevicesIn(const DevicePools& pools) {
  std::vector<FoundDevice> devices;
  for (const DevicePool& pool : pools) {
    for (const auto& slice : pool.slices) {
      for (const PublishedDevice& device : slice->devices) {
        if (devices.size() > kMostDevicesOfNode) return devices;
        const bool is_gpu = IsWholeGpu(device) && !TextAttribute(device.seen, "uuid").empty();
        const bool is_open = pool.usable && device.taints.empty();
        devices.push_back({&device, is_gpu, is_open});
      }
    }
  }
  return devices;
}

// The GPUs, each once; sets the index of each.
std::vector<const FoundDevice*> GpusAmong(std::vector<FoundDevice>& devices) {
  std::vector<FoundDevice*> gpus;
  for (FoundDevice& device : devices) {
    const auto is_same = [&device](const FoundDevice* known) {
      return TextAttribute(known->said->seen, "uuid") == TextAttribute(device.said->seen, "uuid");
    };
    if (!device.is_gpu || std::ranges::any_of(gpus, is_same)) continue;
    if (gpus.size() > kMaxGpusPerNode) break;
    gpus.push_back(&device);
  }
  std::ranges::stable_sort(gpus, {},
                           [](const FoundDevice* gpu) { return GpuIndexIn(gpu->said->name); });
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i]->gpu = static_cast<int>(i);
  return {gpus.begin(), gpus.end()};
}

// Every GPU in the order in which it is tried. Error: why it is not known.
tl::expected<GpusByName, std::string> OrderOf(const MatchByName& name,
                                              std::span<const FoundDevice> devices) {
  GpusByName order{name.resource, {}};
  std::uint64_t cost = 0;
  for (const FoundDevice& device : devices) {
    const cel::Expected<bool> accepts = name.match.Matches(device.said->seen, cost);
    if (!accepts) return tl::unexpected(device.said->name + ": " + accepts.error().message);
    if (cost > kMostCostOfNode) return tl::unexpected(std::string("too long an evaluation"));
    if (!*accepts) continue;
    if (device.gpu < 0 || device.said->divisible) {
      return tl::unexpected(device.said->name + ", no GPU of one claim with a UUID");
    }
    order.order.push_back(device.gpu);
  }
  return order;
}

GpuLinks LinksOf(const std::string& model, std::span<const FoundDevice* const> gpus,
                 LinkLibrary& library) {
  auto matrix = LinksOfProduct(model, static_cast<int>(gpus.size()));
  if (!matrix) return {};
  std::vector<std::string> numa;
  for (const FoundDevice* gpu : gpus) {
    const cel::AttributeValue* const said = gpu->said->seen.attribute(kGpuDriver, "numaNode");
    const auto* const node = said == nullptr ? nullptr : std::get_if<std::int64_t>(said);
    if (node != nullptr && *node >= 0) numa.push_back(std::to_string(*node));
  }
  if (numa.size() == gpus.size()) matrix->numa_affinity = std::move(numa);
  return library.LinksOf(*std::move(matrix), model,
                         {LinkSource::kCatalogue, std::string(wire::kCatalogueSource)});
}

using Devices = std::vector<const GpuDevice*>;  // of one GPU

bool IsOfSameGpu(const GpuDevice& a, const GpuDevice& b) {
  return a.uuid.empty() || b.uuid.empty() ? a.index == b.index : a.uuid == b.uuid;
}

std::vector<Devices> ByGpu(std::span<const GpuDevice* const> devices) {
  std::vector<Devices> gpus;
  for (const GpuDevice* device : devices) {
    if (device->profile.empty() || device->units == 0) continue;
    const auto known = std::ranges::find_if(
        gpus, [device](const Devices& gpu) { return IsOfSameGpu(*gpu.front(), *device); });
    if (known == gpus.end()) {
      gpus.push_back({device});
    } else {
      known->push_back(device);
    }
  }
  return gpus;
}

std::optional<int> PlacementOf(const GpuDevice& device, const MigProduct& product) {
  const auto profile = ParseMigProfile(device.profile);
  const auto row = profile ? product.RowOf(*profile) : std::nullopt;
  const auto placement = row ? product.PlacementAt(*row, device.start) : std::nullopt;
  if (!placement) return std::nullopt;
  const MigPlacement& place = product.placements()[static_cast<std::size_t>(*placement)];
  return place.units == device.units ? placement : std::nullopt;
}

const MigProduct* ProductOf(const Devices& devices) {
  const auto fits = [&devices](const MigProduct& product) {
    return std::ranges::all_of(devices, [&product](const GpuDevice* device) {
      return PlacementOf(*device, product).has_value();
    });
  };
  const MigProduct* const named = MigProductOfLabel(LabelOfProduct(devices.front()->product));
  if (named != nullptr && fits(*named)) return named;
  const auto found = std::ranges::find_if(MigCatalogue(), fits);
  return found == MigCatalogue().end() ? nullptr : &*found;
}

OfferedGpu Offer(const std::string& pool, const Devices& devices, const MigProduct& product) {
  OfferedGpu gpu{.pool = pool,
                 .uuid = devices.front()->uuid,
                 .index = devices.front()->index,
                 .product = MigLibrary::Catalogued(product),
                 .devices = std::vector<std::string>(product.placements().size())};
  for (const GpuDevice* device : devices) {
    const int placement = *PlacementOf(*device, product);
    gpu.devices[static_cast<std::size_t>(placement)] = device->name;
    if (!device->tainted && !device->divisible) gpu.offered |= MigSet{1} << placement;
  }
  return gpu;
}

}  // namespace

bool IsWholeGpu(const PublishedDevice& device) {
  return TextAttribute(device.seen, "type") == "gpu";
}

PublishedSlice WholeGpusOf(const PublishedSlice& slice) {
  PublishedSlice whole = slice;
  std::erase_if(whole.devices, [](const PublishedDevice& device) { return !IsWholeGpu(device); });
  whole.devices.shrink_to_fit();
  return whole;
}

FoundGpus ReadWholeGpus(const DevicePools& pools, std::span<const MatchByName> names,
                        LinkLibrary& library) {
  FoundGpus found;
  std::vector<FoundDevice> devices = FoundDevicesIn(pools);
  if (devices.size() > kMostDevicesOfNode) {
    found.problem = "want at most " + std::to_string(kMostDevicesOfNode) +
                    " devices of a node, got more; kube-scheduler alone gives its GPUs to pods";
    return found;
  }
  const std::vector<const FoundDevice*> gpus = GpusAmong(devices);
  if (gpus.size() > kMaxGpusPerNode) {
    found.problem = "want at most " + std::to_string(kMaxGpusPerNode) +
                    " GPUs of a node, got more; kube-scheduler alone gives them to pods";
    return found;
  }
  if (gpus.empty()) return found;
  for (const MatchByName& name : names) {
    auto order = OrderOf(name, devices);
    if (!order) {
      found.problem = name.resource + ": want a DeviceClass of whole GPUs alone, got " +
                      order.error() + "; kube-scheduler alone places pods that ask for it here";
    } else if (!order->order.empty()) {
      found.gpus.names.push_back(*std::move(order));
    }
  }
  found.gpus.model = LabelOfProduct(TextAttribute(gpus.front()->said->seen, "productName"));
  for (const FoundDevice* gpu : gpus) {
    found.gpus.gpus.push_back({.uuid = TextAttribute(gpu->said->seen, "uuid"),
                               .memory_mib = MemoryMib(gpu->said->seen),
                               .healthy = gpu->is_open});
  }
  found.gpus.links = LinksOf(found.gpus.model, gpus, library);
  return found;
}

std::string LabelOfProduct(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

FoundOffers ReadMigOffers(const std::string& pool, std::span<const GpuDevice* const> devices) {
  FoundOffers found;
  for (const Devices& gpu : ByGpu(devices)) {
    if (const MigProduct* const product = ProductOf(gpu)) {
      found.gpus.push_back(Offer(pool, gpu, *product));
      continue;
    }
    const GpuDevice& first = *gpu.front();
    AddFact(found.problem, "GPU of " + first.name + " (\"" + first.product +
                               "\"): want the MIG devices of a GPU product that is known, got " +
                               std::to_string(gpu.size()) + " that none has");
  }
  return found;
}

}  // namespace berth::dialects
