// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/pool_offers.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/node/mig_library.h"
#include "topology/mig/mig_catalog.h"

namespace berth::dialects {
namespace {

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
    if (!found.problem.empty()) found.problem += "; ";
    found.problem += "GPU of " + first.name + " (\"" + first.product +
                     "\"): want the MIG devices " + "of a GPU product that is known, got " +
                     std::to_string(gpu.size()) + " that none has";
  }
  return found;
}

}  // namespace berth::dialects
