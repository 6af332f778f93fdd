// SPDX-License-Identifier: Apache-2.0
#include "node/facts/nvidia_proc.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "node/facts/pci_tree.h"

namespace berth::node {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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

}  // namespace berth::node
