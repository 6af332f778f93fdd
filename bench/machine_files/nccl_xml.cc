// SPDX-License-Identifier: Apache-2.0
#include "bench/machine_files/nccl_xml.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <pugixml.hpp>

#include "base/text.h"

namespace berth {
namespace {

constexpr int kMaxDepth = 64;

// PCI classes, as NCCL's topo.cc tells devices apart.
constexpr std::string_view kBridge = "0x0604", kSwitchOfNvlinks = "0x0680";
bool IsGpuClass(std::string_view pci_class) {
  return pci_class.starts_with("0x03") || pci_class.starts_with("0x12");
}
bool IsNicClass(std::string_view pci_class) { return pci_class.starts_with("0x02"); }

struct FabricLink {
  std::string target, target_class;
  int count = 0;
  LinkType type = LinkType::kNvlink;
};

struct Device {
  std::string busid, name;
  std::vector<std::string> bridges;  // from the CPU down
  int cpu = 0;                       // index in the order of the file
  int dev = -1;                      // of the <gpu>
  std::vector<FabricLink> links;
};

struct Cpu {
  std::string numa, affinity;
};

// "00000000,000fffff", most significant word first -> "0-19".
std::string CpuListOf(std::string_view mask) {
  std::vector<bool> bits;
  for (auto digit = mask.rbegin(); digit != mask.rend(); ++digit) {
    if (*digit == ',') continue;
    unsigned value = 0;
    if (std::from_chars(&*digit, &*digit + 1, value, 16).ec != std::errc()) return "";
    for (unsigned bit = 0; bit < 4; ++bit) bits.push_back((value >> bit & 1) != 0);
  }
  std::string list;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (!bits[i]) continue;
    std::size_t last = i;
    while (last + 1 < bits.size() && bits[last + 1]) ++last;
    if (!list.empty()) list += ',';
    list += std::to_string(i);
    if (last > i) list += '-' + std::to_string(last);
    i = last;
  }
  return list;
}

class Reader {
 public:
  Result<LinkMatrix> Read(const pugi::xml_document& document) {
    const pugi::xml_node system = document.document_element();
    if (std::string_view(system.name()) != "system") {
      return Invalid("want <system>, got <" + std::string(system.name()) + ">");
    }
    for (const pugi::xml_node cpu : system.children("cpu")) {
      cpus_.push_back(
          {cpu.attribute("numaid").value(), CpuListOf(cpu.attribute("affinity").value())});
      BERTH_TRY_STATUS(ReadChildren(cpu, 0));
    }
    if (gpus_.empty()) return Invalid("want a pci of class 0x03 or 0x12, a GPU, got none");
    if (std::ranges::all_of(gpus_, [](const Device& gpu) { return gpu.dev >= 0; })) {
      std::ranges::stable_sort(gpus_, {}, &Device::dev);
    }
    return Matrix();
  }

 private:
  Status ReadChildren(const pugi::xml_node& parent, int depth) {
    if (depth > kMaxDepth) return Invalid("want at most 64 nested elements");
    for (const pugi::xml_node pci : parent.children("pci")) {
      const std::string_view pci_class = pci.attribute("class").value();
      if (pci_class.starts_with(kBridge)) {
        bridges_.emplace_back(pci.attribute("busid").value());
        BERTH_TRY_STATUS(ReadChildren(pci, depth + 1));
        bridges_.pop_back();
      } else if (pci.child("gpu") || IsGpuClass(pci_class)) {
        BERTH_TRY_STATUS(ReadGpu(pci));
      } else if (pci.child("nic") || IsNicClass(pci_class)) {
        Device nic = DeviceAt(pci);
        nic.name = pci.child("nic").child("net").attribute("name").value();
        nics_.push_back(std::move(nic));
      }
      if (gpus_.size() > kMaxGpus) return Invalid("want at most 64 GPUs, got more");
      if (nics_.size() > kMaxNics) return Invalid("want at most 256 NICs, got more");
    }
    return {};
  }

  Device DeviceAt(const pugi::xml_node& pci) const {
    Device device;
    device.busid = pci.attribute("busid").value();
    device.bridges = bridges_;
    device.cpu = static_cast<int>(cpus_.size()) - 1;
    return device;
  }

  Status ReadGpu(const pugi::xml_node& pci) {
    Device device = DeviceAt(pci);
    const pugi::xml_node gpu = pci.child("gpu");
    const auto number = [&device](const pugi::xml_node& node, const char* key, int high,
                                  int& value) -> Status {
      const auto parsed = ParseInt(node.attribute(key).value(), 0, high);
      if (!parsed) {
        return tl::unexpected(
            Error(parsed.error()).Within("pci " + device.busid + ": " + node.name() + "." + key));
      }
      value = static_cast<int>(*parsed);
      return {};
    };
    if (gpu.attribute("dev")) BERTH_TRY_STATUS(number(gpu, "dev", 1'000'000, device.dev));
    for (const pugi::xml_node link : gpu.children()) {
      const std::string_view name = link.name();
      if (name != "nvlink" && name != "xgmi") continue;
      FabricLink fabric;
      fabric.target = link.attribute("target").value();
      fabric.target_class = link.attribute("tclass").value();
      fabric.type = name == "xgmi" ? LinkType::kXgmi : LinkType::kNvlink;
      BERTH_TRY_STATUS(number(link, "count", kMaxNvlinks, fabric.count));
      device.links.push_back(std::move(fabric));
    }
    gpus_.push_back(std::move(device));
    return {};
  }

  static LinkType RelationOf(const Device& a, const Device& b) {
    if (a.cpu != b.cpu) return LinkType::kSys;
    std::size_t common = 0;
    const std::size_t most = std::min(a.bridges.size(), b.bridges.size());
    while (common < most && a.bridges[common] == b.bridges[common]) ++common;
    if (common == 0) return LinkType::kPhb;
    const bool same = common == a.bridges.size() && common == b.bridges.size();
    return same ? LinkType::kPix : LinkType::kPxb;
  }

  static int LinksToSwitches(const Device& gpu) {
    int links = 0;
    for (const FabricLink& link : gpu.links) {
      if (link.target_class.starts_with(kSwitchOfNvlinks) &&
          !link.target_class.starts_with("0x068001")) {  // NVLink to a POWER CPU
        links += link.count;
      }
    }
    return links;
  }

  void AddFabric(const Device& a, const Device& b, Link& link) const {
    int links = std::min(LinksToSwitches(a), LinksToSwitches(b));
    LinkType type = LinkType::kNvlink;
    for (const FabricLink& fabric : a.links) {
      if (fabric.target != b.busid) continue;
      links += fabric.count;
      type = fabric.type;
    }
    if (links == 0) return;
    link.fabric = type;
    link.fabric_links = static_cast<std::uint8_t>(std::min(links, kMaxNvlinks));
  }

  Result<LinkMatrix> Matrix() const {
    std::vector<std::string> gpu_names, nic_names;
    for (std::size_t i = 0; i < gpus_.size(); ++i) gpu_names.push_back("GPU" + std::to_string(i));
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      nic_names.push_back(nics_[i].name.empty() ? "NIC" + std::to_string(i) : nics_[i].name);
    }
    BERTH_TRY(LinkMatrix matrix, MakeLinkMatrix(std::move(gpu_names), std::move(nic_names)));
    std::vector<const Device*> devices;
    for (const Device& gpu : gpus_) devices.push_back(&gpu);
    for (const Device& nic : nics_) devices.push_back(&nic);
    bool fabric = false;
    for (int a = 0; a < matrix.device_count(); ++a) {
      for (int b = 0; b < matrix.device_count(); ++b) {
        if (a == b) continue;
        const Device& from = *devices[static_cast<std::size_t>(a)];
        const Device& to = *devices[static_cast<std::size_t>(b)];
        matrix.link(a, b).pcie = RelationOf(from, to);
        if (a < matrix.gpu_count() && b < matrix.gpu_count())
          AddFabric(from, to, matrix.link(a, b));
        fabric = fabric || matrix.link(a, b).fabric != LinkType::kUnknown;
      }
    }
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      const Cpu& cpu = cpus_[static_cast<std::size_t>(gpus_[gpu].cpu)];
      matrix.cpu_affinity[gpu] = cpu.affinity;
      matrix.numa_affinity[gpu] = NumaNodeOf(cpu.numa) ? cpu.numa : "";
      for (const FabricLink& link : gpus_[gpu].links) {
        if (link.target != gpus_[gpu].busid) continue;
        matrix.warnings.push_back("link-to-itself: " + matrix.gpus[gpu] + ", ignored");
      }
    }
    if (!fabric) matrix.warnings.emplace_back("no-fabric-listed");
    BERTH_TRY_STATUS(CompleteBySymmetry(matrix));
    return matrix;
  }

  std::vector<Cpu> cpus_;
  std::vector<Device> gpus_, nics_;
  std::vector<std::string> bridges_;
};

}  // namespace

Result<LinkMatrix> ParseNcclXml(std::string_view text) {
  if (text.size() > kMaxTopologyBytes) {
    return Invalid("want at most " + std::to_string(kMaxTopologyBytes) + " bytes, got " +
                   std::to_string(text.size()));
  }
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  if (!parsed) {
    return Invalid("offset " + std::to_string(parsed.offset) +
                   ": want XML: " + parsed.description());
  }
  return Reader().Read(document);
}

}  // namespace berth
