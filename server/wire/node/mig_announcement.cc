// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/mig_announcement.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "scoring/mig/mig_tables.h"
#include "topology/mig/mig_catalog.h"
#include "topology/mig/mig_product.h"

namespace berth::wire {
namespace {

tl::unexpected<Error> WithinPath(Error error, const std::string& path) {
  return tl::unexpected(path.empty() ? std::move(error) : std::move(error).Within(path));
}

Status CheckRange(const char* field, int value, int low, int high) {
  if (value >= low && value <= high) return {};
  return Invalid(std::string(field) + ": want " + std::to_string(low) + ".." +
                 std::to_string(high) + ", got " + std::to_string(value));
}

// nullptr where nothing is said and the label is not known either.
Result<std::shared_ptr<const MigProduct>> ProductOf(MigAnnouncement& announced,
                                                    std::string_view label, MigLibrary& library) {
  const std::string& name = announced.product;
  MigProductSpec& own = announced.own;
  const MigProduct* known = name.empty() ? MigProductOfLabel(label) : FindMigProduct(name);
  if (own.memory_units > 0) {
    BERTH_TRY_STATUS(CheckRange("memory_units", own.memory_units, 1, kMaxMigUnits));
    BERTH_TRY_STATUS(CheckRange("compute_slices", own.compute_slices, 0, kMaxMigUnits));
    own.name = name.empty() ? std::string(BareGpuProductLabel(label)) : name;
    BERTH_TRY(MigProduct product, MigProduct::Make(own));
    return library.Keep(std::move(product));
  }
  if (known == nullptr && (!name.empty() || !own.rows.empty())) {
    return Invalid(
        "product: want a GPU product that is known, or memory_units and profiles, got \"" + name +
        "\"");
  }
  if (known == nullptr || own.rows.empty()) {
    return known == nullptr ? nullptr : MigLibrary::Catalogued(*known);
  }
  MigProduct product = *known;
  for (MigRow& row : own.rows) {
    if (const auto replaced = known->RowOf(row.profile)) {
      const MigRow& before = known->rows()[static_cast<std::size_t>(*replaced)];
      row.engines = before.engines;
      row.once_per_gpu = before.once_per_gpu;
    }
    BERTH_TRY(product, product.WithRow(row));
  }
  return library.Keep(std::move(product));
}

// The set of those that may be made: they need not go together.
Status BuildOffered(const MigProduct& product, const AnnouncedMigGpu& announced, MigGpu& gpu) {
  if (!announced.offered) return {};
  gpu.offered = 0;
  for (const MigInstance& instance : *announced.offered) {
    const auto row = product.RowOf(instance.profile);
    if (row && instance.start < 0) {
      gpu.offered |= product.PlacementsOf(*row);
      continue;
    }
    const auto placement = row ? product.PlacementAt(*row, instance.start) : std::nullopt;
    if (!placement) {
      return Invalid(announced.path + ".offered: want profiles of " + product.name() +
                     ", each with a start or at all of them, got " +
                     MigProfileName(instance.profile) + " at " + std::to_string(instance.start));
    }
    gpu.offered |= MigSet{1} << *placement;
  }
  return {};
}

// The layout of one GPU: instances whose start is known, then the others, the largest first.
Status LayOut(const MigProduct& product, const AnnouncedMigGpu& announced, MigGpu& gpu,
              MigKnowledge& knowledge) {
  MigLayout layout(product);
  std::vector<int> rows;  // of those without a start
  for (const MigInstance& instance : announced.instances) {
    const auto row = product.RowOf(instance.profile);
    const auto placement = row ? product.PlacementAt(*row, instance.start) : std::nullopt;
    const std::string name = MigProfileName(instance.profile);
    if (!row) {
      return Invalid(announced.path + ": want profiles of " + product.name() + ", got " + name);
    }
    if (instance.start < 0) {
      rows.insert(rows.end(), static_cast<std::size_t>(instance.count), *row);
    } else if (!placement) {
      return Invalid(announced.path + ": want a start of " + name + " on " + product.name() +
                     ", got " + std::to_string(instance.start));
    } else if (Status added = layout.Add(*placement); !added) {
      return Invalid(announced.path + ": " + added.error().message);
    } else if (!instance.uuid.empty()) {
      gpu.names.push_back({*placement, instance.uuid});
    }
  }
  gpu.instances = layout.set();
  if (!rows.empty()) knowledge = MigKnowledge::kPerGpu;
  std::ranges::stable_sort(rows, std::greater<>(), [&](int row) {
    return product.rows()[static_cast<std::size_t>(row)].memory_units;
  });
  for (const int row : rows) {
    if (AddByDriver(product, row, gpu.instances)) continue;
    return Invalid(announced.path + ": want instances that go together on " + product.name() +
                   ", got no room for all of them");
  }
  return {};
}

Status AddGpu(const AnnouncedMigGpu& announced, MigSpec& spec) {
  if (announced.index < 0 || announced.index > kMostMigGpuIndex) {
    return Invalid(announced.path + ".index: want 0.." + std::to_string(kMostMigGpuIndex) +
                   ", got " + std::to_string(announced.index));
  }
  if (spec.dynamic && !announced.instances.empty()) {
    return Invalid(announced.path + ".instances: want none where GPUs are cut when a pod comes");
  }
  MigGpu gpu{announced.index, announced.uuid};
  BERTH_TRY_STATUS(LayOut(*spec.product, announced, gpu, spec.knowledge));
  BERTH_TRY_STATUS(BuildOffered(*spec.product, announced, gpu));
  spec.gpus.push_back(std::move(gpu));
  return {};
}

}  // namespace

void CompleteRow(MigRow& row) {
  if (row.max_instances == 0) row.max_instances = std::popcount(row.starts);
  row.once_per_gpu =
      row.profile.extension == MigExtension::kMe || row.profile.extension == MigExtension::kMeAll;
  row.source = "the node";
  row.confidence = MigConfidence::kHigh;
}

bool AddByDriver(const MigProduct& product, int row, MigSet& instances) {
  const auto placement = MigStartBy(MigStartRule::kDriver, product, instances, row);
  if (placement) instances |= MigSet{1} << *placement;
  return placement.has_value();
}

Result<MigSpec> BuildMig(MigAnnouncement announced, const std::string& path, std::string_view label,
                         MigLibrary& library) {
  MigSpec spec = std::move(announced.rest);
  spec.gpus.clear();
  spec.product = nullptr;
  spec.knowledge = MigKnowledge::kExact;
  if (!announced.gpus.empty()) {
    auto built = ProductOf(announced, label, library);
    if (!built) return WithinPath(std::move(built).error(), path);
    spec.product = *std::move(built);
    if (spec.product == nullptr) {
      return Invalid((path.empty() ? "" : path + ".") +
                     "product: want a GPU product, since the node's label names none");
    }
  }
  for (const AnnouncedMigGpu& gpu : announced.gpus) BERTH_TRY_STATUS(AddGpu(gpu, spec));
  if (!spec.by_claims()) std::ranges::sort(spec.gpus, {}, &MigGpu::index);
  if (announced.knowledge) spec.knowledge = *announced.knowledge;
  if (Status valid = Validate(spec); !valid) return WithinPath(std::move(valid).error(), path);
  // Here, and not when the first pod is placed on such a node.
  if (spec.dynamic && !spec.foreign && spec.product != nullptr) (void)MigTablesOf(spec.product);
  return spec;
}

}  // namespace berth::wire
