// SPDX-License-Identifier: Apache-2.0
#include "server/wire/mig_json.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "cluster/node.h"
#include "scoring/mig/mig_tables.h"
#include "topology/mig/mig_catalog.h"
#include "topology/mig/mig_layout.h"
#include "topology/mig/mig_start_rule.h"

namespace berth::wire {
namespace {

constexpr int kMostCount = 1'000'000;
constexpr int kMostGpuIndex = 4095;  // devices on GPUs of their own have one each (node_mig.h)
constexpr std::int64_t kMostMemoryMib = std::int64_t{1} << 30;

Status ReadProfile(const std::string& text, const std::string& path, MigProfile& profile) {
  auto read = ParseMigProfile(text);
  if (!read) return tl::unexpected(std::move(read).error().Within(path));
  profile = *read;
  return {};
}

tl::unexpected<Error> WithinPath(Error error, const std::string& path) {
  return tl::unexpected(path.empty() ? std::move(error) : std::move(error).Within(path));
}

// One of a few words; nothing where the text is empty.
template <class Enum>
Status ReadWord(const std::string& text, const std::string& path,
                std::initializer_list<Enum> values, std::string_view (*name)(Enum), Enum& value) {
  if (text.empty()) return {};
  std::string wanted;
  for (const Enum known : values) {
    if (name(known) == text) {
      value = known;
      return {};
    }
    wanted.append(wanted.empty() ? "" : ", ").append(name(known));
  }
  return Invalid(path + ": want one of " + wanted + ", got \"" + text + "\"");
}

Status ReadRow(const Json& json, const std::string& path, MigRow& row) {
  Fields fields(json, path);
  std::string profile;
  fields.Text("profile", profile);
  fields.Int("size", 1, kMaxMigUnits, row.memory_units);
  fields.Int("max", 1, kMaxMigUnits, row.max_instances);
  fields.Int("memory_mib", 0, kMostMemoryMib, row.memory_mib);
  fields.List("starts", [&row](const Json& start, const std::string& place) -> Status {
    if (!start.is_number_integer() || start < 0 || start >= kMaxMigUnits) {
      return Invalid(place + ": want a memory unit from 0 to " + std::to_string(kMaxMigUnits - 1) +
                     ", got " + start.dump());
    }
    row.starts |= static_cast<MigUnits>(1U << start.get<unsigned>());
    return {};
  });
  BERTH_TRY_STATUS(fields.Finish());
  BERTH_TRY_STATUS(ReadProfile(profile, path + ".profile", row.profile));
  if (row.max_instances == 0) row.max_instances = std::popcount(row.starts);
  row.once_per_gpu =
      row.profile.extension == MigExtension::kMe || row.profile.extension == MigExtension::kMeAll;
  row.source = "the node";
  row.confidence = MigConfidence::kHigh;
  return {};
}

// The product that is meant: of the catalogue, with rows of the node's own, or all of its own.
class ProductReader {
 public:
  void Read(Fields& fields) {
    fields.Text("product", name_);
    fields.Int("memory_units", 1, kMaxMigUnits, own_.memory_units);
    fields.Int("compute_slices", 1, kMaxMigUnits, own_.compute_slices);
    fields.List("profiles", [this](const Json& json, const std::string& place) {
      return ReadRow(json, place, own_.rows.emplace_back());
    });
  }

  // nullptr where nothing is said and the label is not known either.
  Result<std::shared_ptr<const MigProduct>> Build(std::string_view label, MigLibrary& library) {
    const MigProduct* known = name_.empty() ? MigProductOfLabel(label) : FindMigProduct(name_);
    if (own_.memory_units > 0) {
      own_.name = name_.empty() ? std::string(BareGpuProductLabel(label)) : name_;
      BERTH_TRY(MigProduct product, MigProduct::Make(own_));
      return library.Keep(std::move(product));
    }
    if (known == nullptr && (!name_.empty() || !own_.rows.empty())) {
      return Invalid(
          "product: want a GPU product that is known, or memory_units and profiles, got \"" +
          name_ + "\"");
    }
    if (known == nullptr || own_.rows.empty()) {
      return known == nullptr ? nullptr : MigLibrary::Catalogued(*known);
    }
    MigProduct product = *known;
    for (MigRow& row : own_.rows) {
      if (const auto replaced = known->RowOf(row.profile)) {
        const MigRow& before = known->rows()[static_cast<std::size_t>(*replaced)];
        row.engines = before.engines;
        row.once_per_gpu = before.once_per_gpu;
      }
      BERTH_TRY(product, product.WithRow(row));
    }
    return library.Keep(std::move(product));
  }

 private:
  std::string name_;
  MigProductSpec own_;
};

struct Instance {
  MigProfile profile;
  int start = MigGrant::kUnknown;
  int count = 1;
};
struct Gpu {
  MigGpu gpu;
  std::string path;
  std::vector<Instance> instances;
  std::optional<std::vector<Instance>> offered;
};

Status ReadInstance(const Json& json, const std::string& path, std::vector<Instance>& instances) {
  Fields fields(json, path);
  Instance instance;
  std::string profile;
  fields.Text("profile", profile);
  fields.Int("start", 0, kMaxMigUnits - 1, instance.start);
  fields.Int("count", 1, kMaxMigUnits, instance.count);
  BERTH_TRY_STATUS(fields.Finish());
  BERTH_TRY_STATUS(ReadProfile(profile, path + ".profile", instance.profile));
  if (instance.start >= 0 && instance.count > 1) {
    return Invalid(path + ": want start or count, got both");
  }
  instances.push_back(instance);
  return {};
}

Status ReadGpu(const Json& json, const std::string& path, std::vector<Gpu>& gpus) {
  Fields fields(json, path);
  Gpu& gpu = gpus.emplace_back();
  gpu.path = path;
  gpu.gpu.index = -1;
  fields.Int("index", 0, kMostGpuIndex, gpu.gpu.index);
  fields.Text("uuid", gpu.gpu.uuid);
  fields.List("instances", [&gpu](const Json& instance, const std::string& place) {
    return ReadInstance(instance, place, gpu.instances);
  });
  if (fields.Peek("offered") != nullptr) gpu.offered.emplace();
  fields.List("offered", [&gpu](const Json& instance, const std::string& place) {
    return ReadInstance(instance, place, *gpu.offered);
  });
  BERTH_TRY_STATUS(fields.Finish());
  if (gpu.gpu.index < 0) return Invalid(path + ".index: want the index of a GPU, got none");
  return {};
}

// The set of those that may be made: they need not go together.
Status ReadOffered(const MigProduct& product, Gpu& gpu) {
  if (!gpu.offered) return {};
  gpu.gpu.offered = 0;
  for (const Instance& instance : *gpu.offered) {
    const auto row = product.RowOf(instance.profile);
    if (row && instance.start < 0) {
      gpu.gpu.offered |= product.PlacementsOf(*row);
      continue;
    }
    const auto placement = row ? product.PlacementAt(*row, instance.start) : std::nullopt;
    if (!placement) {
      return Invalid(gpu.path + ".offered: want profiles of " + product.name() +
                     ", each with a start or at all of them, got " +
                     MigProfileName(instance.profile) + " at " + std::to_string(instance.start));
    }
    gpu.gpu.offered |= MigSet{1} << *placement;
  }
  return {};
}

// The layout of one GPU: instances whose start is known, then the others, the largest first.
Status LayOut(const MigProduct& product, Gpu& gpu, MigKnowledge& knowledge) {
  MigLayout layout(product);
  std::vector<int> rows;  // of those without a start
  for (const Instance& instance : gpu.instances) {
    const auto row = product.RowOf(instance.profile);
    const auto placement = row ? product.PlacementAt(*row, instance.start) : std::nullopt;
    const std::string name = MigProfileName(instance.profile);
    if (!row) return Invalid(gpu.path + ": want profiles of " + product.name() + ", got " + name);
    if (instance.start < 0) {
      rows.insert(rows.end(), static_cast<std::size_t>(instance.count), *row);
    } else if (!placement) {
      return Invalid(gpu.path + ": want a start of " + name + " on " + product.name() + ", got " +
                     std::to_string(instance.start));
    } else if (Status added = layout.Add(*placement); !added) {
      return Invalid(gpu.path + ": " + added.error().message);
    }
  }
  gpu.gpu.instances = layout.set();
  if (!rows.empty()) knowledge = MigKnowledge::kPerGpu;
  std::ranges::stable_sort(rows, std::greater<>(), [&](int row) {
    return product.rows()[static_cast<std::size_t>(row)].memory_units;
  });
  for (const int row : rows) {
    if (AddByDriver(product, row, gpu.gpu.instances)) continue;
    return Invalid(gpu.path + ": want instances that go together on " + product.name() +
                   ", got no room for all of them");
  }
  return {};
}

Status ReadShared(const Json& json, const std::string& path, MigSpec& spec) {
  Fields fields(json, path);
  std::string profile;
  MigStock stock;
  fields.Text("profile", profile);
  fields.Bool("renamed", stock.resource.shared);
  fields.Int("count", 0, kMostCount, stock.count);
  BERTH_TRY_STATUS(fields.Finish());
  BERTH_TRY_STATUS(ReadProfile(profile, path + ".profile", stock.resource.profile));
  spec.shared.push_back(stock);
  return {};
}

Json InstancesJson(const MigProduct& product, MigSet instances) {
  Json json = Json::array();
  for (; instances != 0; instances &= instances - 1) {
    const MigPlacement& place =
        product.placements()[static_cast<std::size_t>(std::countr_zero(instances))];
    const MigRow& row = product.rows()[static_cast<std::size_t>(place.row)];
    json.push_back({{"profile", MigProfileName(row.profile)}, {"start", place.start}});
  }
  return json;
}

// With the memory units that each takes.
Json SizedJson(const MigProduct& product, MigSet instances) {
  Json json = InstancesJson(product, instances);
  for (Json& instance : json) {
    const MigSet lowest = instances & (~instances + 1);
    instance["size"] = std::popcount(product.UnitsOf(lowest));
    instances &= ~lowest;
  }
  return json;
}

Json RowsJson(const MigProduct& product) {
  Json json = Json::array();
  for (const MigRow& row : product.rows()) {
    Json starts = Json::array();
    for (int start = 0; start < kMaxMigUnits; ++start) {
      if ((row.starts >> start & 1) != 0) starts.push_back(start);
    }
    json.push_back({{"profile", MigProfileName(row.profile)},
                    {"size", row.memory_units},
                    {"starts", std::move(starts)},
                    {"max", row.max_instances},
                    {"memory_mib", row.memory_mib}});
  }
  return json;
}

void AddProduct(const MigProduct& product, Json& json) {
  const MigProduct* const known = FindMigProduct(product.name());
  json["product"] = product.name();
  if (known != nullptr && *known == product) return;
  if (known == nullptr) {
    json["memory_units"] = product.memory_units();
    json["compute_slices"] = product.compute_slices();
  }
  json["profiles"] = RowsJson(product);
}

}  // namespace

bool AddByDriver(const MigProduct& product, int row, MigSet& instances) {
  const auto placement = MigStartBy(MigStartRule::kDriver, product, instances, row);
  if (placement) instances |= MigSet{1} << *placement;
  return placement.has_value();
}

Result<MigSpec> ReadMig(const Json& json, const std::string& path, std::string_view label,
                        MigLibrary& library) {
  Fields fields(json, path);
  MigSpec spec;
  ProductReader product;
  std::vector<Gpu> gpus;
  std::string partitioning = "static", allocator, dialect, knowledge, single, trouble;
  int version = 1;
  fields.Int("version", 1, 1, version);
  product.Read(fields);
  fields.Text("partitioning", partitioning);
  fields.Text("allocator", allocator);
  fields.Bool("foreign", spec.foreign);
  fields.Bool("fixed", spec.fixed);
  fields.Text("dialect", dialect);
  fields.Text("knowledge", knowledge);
  fields.List("gpus", [&gpus](const Json& gpu, const std::string& place) {
    return ReadGpu(gpu, place, gpus);
  });
  fields.List("shared", [&spec](const Json& stock, const std::string& place) {
    return ReadShared(stock, place, spec);
  });
  fields.Text("single", single);
  fields.Integer("single_memory_mib", 0, kMostMemoryMib, spec.single_memory_mib);
  fields.Text("trouble", trouble);
  BERTH_TRY_STATUS(fields.Finish());
  const std::string dot = path.empty() ? "" : path + ".";
  if (partitioning != "static" && partitioning != "dynamic") {
    return Invalid(dot + "partitioning: want static or dynamic, got \"" + partitioning + "\"");
  }
  spec.dynamic = partitioning == "dynamic";
  spec.allocator = spec.dynamic ? MigAllocator::kBerth : MigAllocator::kFirstFit;
  using enum MigAllocator;
  if (allocator == MigAllocatorName(kKubeScheduler)) {
    spec.allocator = kKubeScheduler;  // not for people to say
  } else {
    BERTH_TRY_STATUS(ReadWord(allocator, dot + "allocator", {kBerth, kFirstFit, kDriver, kHami},
                              MigAllocatorName, spec.allocator));
  }
  BERTH_TRY_STATUS(ReadWord(dialect, dot + "dialect", {MigDialect::kBerth, MigDialect::kHami},
                            MigDialectName, spec.dialect));
  spec.knowledge = MigKnowledge::kExact;
  if (!gpus.empty()) {
    auto built = product.Build(label, library);
    if (!built) return WithinPath(std::move(built).error(), path);
    spec.product = *std::move(built);
    if (spec.product == nullptr) {
      return Invalid(dot + "product: want a GPU product, since the node's label names none");
    }
  }
  for (Gpu& gpu : gpus) {
    if (spec.dynamic && !gpu.instances.empty()) {
      return Invalid(gpu.path + ".instances: want none where GPUs are cut when a pod comes");
    }
    BERTH_TRY_STATUS(LayOut(*spec.product, gpu, spec.knowledge));
    BERTH_TRY_STATUS(ReadOffered(*spec.product, gpu));
    spec.gpus.push_back(std::move(gpu.gpu));
  }
  if (!spec.by_claims()) std::ranges::sort(spec.gpus, {}, &MigGpu::index);
  BERTH_TRY_STATUS(ReadWord(knowledge, dot + "knowledge",
                            {MigKnowledge::kCounts, MigKnowledge::kPerGpu, MigKnowledge::kExact},
                            MigKnowledgeName, spec.knowledge));
  BERTH_TRY_STATUS(ReadWord(
      trouble, dot + "trouble",
      {MigTrouble::kChanging, MigTrouble::kFailed, MigTrouble::kInvalid, MigTrouble::kStale},
      MigTroubleName, spec.trouble));
  if (!single.empty()) {
    BERTH_TRY_STATUS(ReadProfile(single, dot + "single", spec.single.emplace()));
  }
  if (Status valid = Validate(spec); !valid) return WithinPath(std::move(valid).error(), path);
  // Here, and not when the first pod is placed on such a node.
  if (spec.dynamic && !spec.foreign && spec.product != nullptr) (void)MigTablesOf(spec.product);
  return spec;
}

Json MigJson(const MigSpec& spec) {
  Json json = {{"partitioning", spec.dynamic ? "dynamic" : "static"},
               {"allocator", MigAllocatorName(spec.allocator)},
               {"knowledge", MigKnowledgeName(spec.knowledge)}};
  if (spec.foreign) json["foreign"] = true;
  if (spec.fixed) json["fixed"] = true;
  if (spec.product != nullptr) AddProduct(*spec.product, json);
  if (spec.dialect != MigDialect::kBerth) json["dialect"] = MigDialectName(spec.dialect);
  Json gpus = Json::array();
  for (const MigGpu& gpu : spec.gpus) {
    Json entry = {{"index", gpu.index}, {"uuid", gpu.uuid}};
    if (!spec.dynamic) entry["instances"] = InstancesJson(*spec.product, gpu.instances);
    if (~gpu.offered != 0) entry["offered"] = InstancesJson(*spec.product, gpu.offered);
    gpus.push_back(std::move(entry));
  }
  json["gpus"] = std::move(gpus);
  Json shared = Json::array();
  for (const MigStock& stock : spec.shared) {
    shared.push_back({{"profile", MigProfileName(stock.resource.profile)},
                      {"renamed", stock.resource.shared},
                      {"count", stock.count}});
  }
  if (!shared.empty()) json["shared"] = std::move(shared);
  if (spec.single) {
    json["single"] = MigProfileName(*spec.single);
    json["single_memory_mib"] = spec.single_memory_mib;
  }
  if (spec.trouble != MigTrouble::kNone) json["trouble"] = MigTroubleName(spec.trouble);
  return json;
}

Json MigUseJson(const MigSpec& spec, const MigUse& use) {
  Json json = Json::array();
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    const MigSet taken = use.taken()[gpu];
    json.push_back({{"gpu", spec.gpus[gpu].index},
                    {"units", spec.product->memory_units()},
                    {"taken", SizedJson(*spec.product, taken)},
                    {"free", SizedJson(*spec.product, spec.gpus[gpu].instances & ~taken)}});
  }
  return json;
}

}  // namespace berth::wire
