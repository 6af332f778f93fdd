// SPDX-License-Identifier: Apache-2.0
#include "node/facts/probe.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cluster/values/pod_record.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/agent_annotations.h"
#include "server/wire/node/gpu_conditions.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/topology_json.h"
#include "topology/mig/mig_product.h"

namespace berth::node {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kAmd = 0x1002, kXgmiLink = 11;
constexpr std::size_t kMostPropertyBytes = std::size_t{16} << 10;
constexpr std::int64_t kMostNodes = 1024;

using Properties = std::map<std::string, std::int64_t, std::less<>>;

// Lines "name number"; what is no number is left out.
Properties ReadProperties(const fs::path& file) {
  Properties properties;
  const auto text = ReadFile(file.string(), kMostPropertyBytes);
  if (!text) return properties;
  for (const std::string_view line : PartsOf(*text, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto value =
        ParseInt(Trimmed(line.substr(blank)), 0, std::numeric_limits<std::int64_t>::max());
    if (value) properties.emplace(line.substr(0, blank), *value);
  }
  return properties;
}

std::int64_t ValueOf(const Properties& properties, std::string_view name) {
  const auto found = properties.find(name);
  return found == properties.end() ? 0 : found->second;
}

// The numbers that name the entries of a folder, ascending.
std::vector<std::int64_t> NumbersIn(const fs::path& folder) {
  std::vector<std::int64_t> numbers;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    const auto number = ParseInt(at->path().filename().string(), 0, kMostNodes - 1);
    if (number) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

// location_id is bus, device and function in 16 bits.
std::string AddressOf(const Properties& node) {
  const auto location = static_cast<std::uint32_t>(ValueOf(node, "location_id") & 0xffff);
  return PciAddress(static_cast<std::uint32_t>(ValueOf(node, "domain") & 0xffffffff), location >> 8,
                    location >> 3 & 0x1f, location & 7);
}

// How many links are bonded: the kernel's least bandwidth is that of one, its most that of all.
std::uint8_t BondedLinks(const Properties& link) {
  const std::int64_t one = ValueOf(link, "min_bandwidth"), all = ValueOf(link, "max_bandwidth");
  const std::int64_t links = one > 0 ? all / one : 1;
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(links, 1, kMaxNvlinks));
}

class Kfd {
 public:
  explicit Kfd(fs::path nodes) : nodes_(std::move(nodes)) {}

  void FindGpus() {
    for (const std::int64_t number : NumbersIn(nodes_)) {
      const Properties node = ReadProperties(FolderOf(number) / "properties");
      if (ValueOf(node, "simd_count") == 0 || ValueOf(node, "vendor_id") != kAmd) continue;
      if (found_.gpus.size() == static_cast<std::size_t>(kMaxGpus)) {
        return Refuse("want at most " + std::to_string(kMaxGpus) + " GPUs, got more");
      }
      const std::string address = AddressOf(node);
      if (std::ranges::any_of(found_.gpus,
                              [&](const FoundGpu& gpu) { return SameCard(gpu, address); })) {
        return Refuse("the GPUs are partitioned");
      }
      positions_[number] = found_.gpus.size();
      found_.gpus.push_back({address, address, static_cast<int>(found_.gpus.size()), false});
    }
  }

  void FindLinks() {
    found_.links.assign(found_.gpus.size() * found_.gpus.size(), Link{});
    for (const auto& [number, position] : positions_) {
      const fs::path links = FolderOf(number) / "io_links";
      for (const std::int64_t index : NumbersIn(links)) {
        const Properties link = ReadProperties(links / std::to_string(index) / "properties");
        const auto peer = positions_.find(ValueOf(link, "node_to"));
        if (ValueOf(link, "type") != kXgmiLink || peer == positions_.end()) continue;
        if (peer->second == position) continue;
        Link& cell = found_.link(position, peer->second);
        cell.fabric = LinkType::kXgmi;
        cell.fabric_links = BondedLinks(link);
        found_.link(peer->second, position) = cell;
      }
    }
  }

  FoundMachine Take() && { return std::move(found_); }

 private:
  [[nodiscard]] fs::path FolderOf(std::int64_t number) const {
    return nodes_ / std::to_string(number);
  }

  // Parts of one card differ in the function of its address alone.
  static bool SameCard(const FoundGpu& gpu, const std::string& address) {
    return gpu.pci.substr(0, gpu.pci.rfind('.')) == address.substr(0, address.rfind('.'));
  }

  void Refuse(const std::string& why) {
    found_.gpus.clear();
    positions_.clear();
    found_.problems.push_back("AMD GPUs: " + why + ": none is described");
  }

  const fs::path nodes_;
  FoundMachine found_;
  std::map<std::int64_t, std::size_t> positions_;  // of a node in found_.gpus
};

constexpr std::size_t kMostInformationBytes = std::size_t{16} << 10;

// "GPU-..." of the line "GPU UUID:  GPU-..."; "" where it is not there, or "GPU-????????-...", as
// the module writes it before it has looked.
std::string UuidIn(std::string_view text) {
  for (const std::string_view line : PartsOf(text, '\n')) {
    constexpr std::string_view kKey = "GPU UUID:";
    if (!line.starts_with(kKey)) continue;
    const std::string_view uuid = Trimmed(line.substr(kKey.size()));
    return uuid.find('?') == uuid.npos && uuid.size() <= kMostIdBytes ? std::string(uuid) : "";
  }
  return "";
}

using wire::Json;

void AddProblem(std::string text, std::vector<std::string>& problems) {
  if (problems.size() < kMostProblems) problems.push_back(Shortened(text, kMostProblemBytes));
}

FoundMachine FindNvidia(const ProbeRoots& roots) {
  std::string why;
  if (auto nvml = LoadNvml(roots.driver); !nvml) {
    why = nvml.error().message;
  } else if (auto found = ProbeNvml(*nvml); !found) {
    why = found.error().message;
  } else {
    return *std::move(found);
  }
  FoundMachine found = ProbeNvidiaProc(roots.proc);
  if (!found.gpus.empty()) {
    found.problems.push_back("NVML: " + why + ": NVLinks and MIG devices are not known");
  }
  return found;
}

// The links of the GPUs that are given whole, and those to NICs.
class Matrix {
 public:
  Matrix(FoundMachine& found, const PciTree& tree) : found_(found), tree_(tree) {
    for (std::size_t i = 0; i < found.gpus.size(); ++i) {
      if (!found.gpus[i].mig) whole_.push_back(i);
    }
  }

  [[nodiscard]] const std::vector<std::size_t>& whole() const { return whole_; }

  Result<std::string> Annotation(std::vector<std::string>& problems) {
    std::size_t more = 0;
    const std::vector<Nic> nics = tree_.Nics(more);
    if (more > 0) {
      AddProblem(std::to_string(more) + " NICs beyond the first " + std::to_string(kMostFactNics) +
                     " are left out",
                 problems);
    }
    std::vector<std::string> names, gpus;
    for (const Nic& nic : nics) names.push_back(nic.name);
    for (std::size_t i = 0; i < whole_.size(); ++i) gpus.push_back("GPU" + std::to_string(i));
    BERTH_TRY(LinkMatrix matrix, MakeLinkMatrix(std::move(gpus), std::move(names)));
    for (std::size_t i = 0; i < whole_.size(); ++i) FillRow(i, nics, matrix);
    BERTH_TRY_STATUS(CompleteBySymmetry(matrix));
    return wire::TopologyAnnotation(matrix);
  }

 private:
  void FillRow(std::size_t row, const std::vector<Nic>& nics, LinkMatrix& matrix) {
    const FoundGpu& gpu = found_.gpus[whole_[row]];
    const int device = static_cast<int>(row);
    if (const auto numa = tree_.NumaNode(gpu.pci)) {
      matrix.numa_affinity[row] = std::to_string(*numa);
    }
    matrix.cpu_affinity[row] = tree_.LocalCpus(gpu.pci);
    for (std::size_t other = 0; other < whole_.size(); ++other) {
      if (other == row) continue;
      Link link = found_.link(whole_[row], whole_[other]);
      if (link.pcie == LinkType::kUnknown) {
        link.pcie = tree_.Between(gpu.pci, found_.gpus[whole_[other]].pci);
      }
      matrix.link(device, static_cast<int>(other)) = link;
    }
    for (std::size_t nic = 0; nic < nics.size(); ++nic) {
      const int column = matrix.gpu_count() + static_cast<int>(nic);
      const Link link{tree_.Between(gpu.pci, nics[nic].pci), LinkType::kUnknown, 0};
      matrix.link(device, column) = matrix.link(column, device) = link;
    }
  }

  FoundMachine& found_;
  const PciTree& tree_;
  std::vector<std::size_t> whole_;  // positions in found_.gpus
};

// As GPU Feature Discovery writes it: "NVIDIA-A100-SXM4-80GB".
std::string ProductLabel(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

// The annotation berth.dev/mig.
std::string MigAnnotation(const FoundMachine& found) {
  Json json = Json::object(), gpus = Json::array();
  const MigProduct* const product = MigProductOfLabel(ProductLabel(found.product));
  if (product != nullptr) json["product"] = product->name();
  for (const FoundGpu& gpu : found.gpus) {
    if (!gpu.mig) continue;
    Json instances = Json::array();
    for (const MigFact& device : found.mig) {
      if (device.gpu != gpu.number) continue;
      Json instance = {{"profile", device.profile}, {"start", device.start}};
      // Berth reads no longer one.
      if (device.id.size() <= GivenDevices::kLongestId) instance["uuid"] = device.id;
      instances.push_back(std::move(instance));
    }
    gpus.push_back({{"index", gpu.number}, {"uuid", gpu.id}, {"instances", std::move(instances)}});
  }
  json["gpus"] = std::move(gpus);
  return wire::JsonText(json);
}

void AddUuids(const std::vector<GpuFact>& gpus, NodeFacts& facts) {
  if (!gpus.empty()) {
    facts.annotations[std::string(wire::kGpuUuidsKey)] = Join(gpus, ",", &GpuFact::id);
  }
}

// The annotation berth.dev/gpu-models, where GPUs differ and each of them says what it is.
void AddModels(const FoundMachine& found, NodeFacts& facts) {
  std::vector<wire::GpuKind> kinds;
  std::string lacking;
  for (const FoundGpu& gpu : found.gpus) {
    if (!gpu.product.empty() && gpu.memory_mib > 0) {
      kinds.push_back({gpu.id, ProductLabel(gpu.product), gpu.memory_mib, gpu.capability});
    } else if (!gpu.mig) {  // a partitioned one may say nothing: that takes a right
      lacking = "NVML: GPU " + std::to_string(gpu.number) + " does not say its name or its memory";
    }
  }
  if (kinds.empty()) return;  // the driver does not say it
  if (!lacking.empty()) return AddProblem(std::move(lacking), facts.problems);
  const auto is_like_first = [&first = kinds.front()](const wire::GpuKind& kind) {
    return kind.model == first.model && kind.memory_mib == first.memory_mib &&
           kind.capability == first.capability;
  };
  if (std::ranges::all_of(kinds, is_like_first)) return;
  facts.annotations[std::string(wire::kGpuModelsKey)] = wire::GpuKindsText(kinds);
}

void AddTopology(Matrix& matrix, const FoundMachine& found, NodeFacts& facts) {
  if (found.links.empty()) return;
  auto text = matrix.Annotation(facts.problems);
  if (text) {
    facts.annotations[std::string(wire::kTopologyAnnotation)] = *std::move(text);
  } else {
    AddProblem("links: " + text.error().message, facts.problems);
  }
}

void AddMig(const FoundMachine& found, NodeFacts& facts) {
  const bool any = std::ranges::any_of(found.gpus, &FoundGpu::mig);
  if (!any || found.mig_unknown) return;
  if (found.mig.empty()) {
    return AddProblem("NVML shows no MIG devices, though GPUs are partitioned", facts.problems);
  }
  facts.annotations[std::string(wire::kMigAnnotation)] = MigAnnotation(found);
}

constexpr unsigned kMostSeconds = 20;

}  // namespace

FoundMachine ProbeAmdKfd(const std::string& sys_root) {
  Kfd kfd(fs::path(sys_root) / "class/kfd/kfd/topology/nodes");
  kfd.FindGpus();
  kfd.FindLinks();
  return std::move(kfd).Take();
}

FoundMachine ProbeNvidiaProc(const std::string& proc_root) {
  FoundMachine found;
  std::error_code failed;
  fs::directory_iterator at(proc_root + "/driver/nvidia/gpus", failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    if (found.gpus.size() == static_cast<std::size_t>(kMaxGpus)) {
      found.gpus.clear();
      found.problems.push_back("want at most " + std::to_string(kMaxGpus) +
                               " GPUs in /proc/driver/nvidia/gpus, got more: none is described");
      return found;
    }
    const auto text = ReadFile((at->path() / "information").string(), kMostInformationBytes);
    FoundGpu& gpu = found.gpus.emplace_back();
    gpu.pci = PciAddress(at->path().filename().string());
    if (text) gpu.id = UuidIn(*text);
    if (gpu.id.empty()) found.problems.push_back("GPU at " + gpu.pci + ": its UUID is not known");
  }
  std::ranges::sort(found.gpus, {}, &FoundGpu::pci);
  for (std::size_t i = 0; i < found.gpus.size(); ++i) found.gpus[i].number = static_cast<int>(i);
  return found;
}

NodeFacts FactsOf(FoundMachine found, const PciTree& tree) {
  NodeFacts facts;
  for (std::string& text : found.problems) AddProblem(std::move(text), facts.problems);
  Matrix matrix(found, tree);
  for (std::size_t i = 0; i < matrix.whole().size(); ++i) {
    const FoundGpu& gpu = found.gpus[matrix.whole()[i]];
    if (gpu.id.empty()) continue;
    facts.gpus.push_back({static_cast<int>(i), gpu.id, gpu.pci, tree.NumaNode(gpu.pci)});
  }
  facts.mig = found.mig;
  // Without one of them nobody can say which places in these lists it would have.
  if (facts.gpus.size() == matrix.whole().size() && !facts.gpus.empty()) {
    AddUuids(facts.gpus, facts);
    AddModels(found, facts);
    AddTopology(matrix, found, facts);
  }
  AddMig(found, facts);
  return facts;
}

NodeFacts ProbeMachine(const ProbeRoots& roots) {
  const PciTree tree(roots.sys);
  FoundMachine nvidia = FindNvidia(roots);
  if (!nvidia.gpus.empty()) return FactsOf(std::move(nvidia), tree);
  FoundMachine amd = ProbeAmdKfd(roots.sys);
  std::ranges::copy(nvidia.problems, std::back_inserter(amd.problems));
  NodeFacts facts = FactsOf(std::move(amd), tree);
  if (facts.gpus.empty()) AddProblem("no GPU of NVIDIA or AMD was found", facts.problems);
  return facts;
}

int PrintFacts(const ProbeRoots& roots) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGALRM, SIG_DFL);
  alarm(kMostSeconds);
  const std::string text = ToJson(ProbeMachine(roots)) + "\n";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return 0;
}

}  // namespace berth::node
