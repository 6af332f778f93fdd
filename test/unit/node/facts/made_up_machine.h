// SPDX-License-Identifier: Apache-2.0
//
// MadeUpMachine: folders with the files of /sys and /proc that the probe reads, and the description
// of an invented NVML (test/support/fake_nvml).
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "node/facts/probe.h"
#include "test/support/build_paths.h"

namespace berth::test {

class MadeUpMachine {
 public:
  MadeUpMachine() : root_(Root()) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_ + "/sys/bus/pci/devices");
    std::filesystem::create_directories(root_ + "/proc");
    Describe("");
    setenv("FAKE_NVML", (root_ + "/nvml").c_str(), 1);
  }
  ~MadeUpMachine() { std::filesystem::remove_all(root_); }
  MadeUpMachine(const MadeUpMachine&) = delete;
  MadeUpMachine& operator=(const MadeUpMachine&) = delete;

  [[nodiscard]] std::string sys() const { return root_ + "/sys"; }

  void Write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file(root_ + "/" + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  // A device below "pci0000:10/0000:10:01.0", say; numa -1: the firmware does not say.
  void Device(const std::string& above, const std::string& pci, int numa,
              const std::string& cpus = "") const {
    const std::string folder = "sys/devices/" + above + "/" + pci;
    Write(folder + "/numa_node", std::to_string(numa) + "\n");
    Write(folder + "/local_cpulist", cpus + "\n");
    std::filesystem::create_symlink("../../../devices/" + above + "/" + pci,
                                    root_ + "/sys/bus/pci/devices/" + pci);
  }

  // An RDMA device of the PCI device that is there already.
  void Rdma(const std::string& name, const std::string& pci) const {
    const std::string folder = root_ + "/sys/class/infiniband/" + name;
    std::filesystem::create_directories(folder);
    std::filesystem::create_symlink(std::filesystem::canonical(sys() + "/bus/pci/devices/" + pci),
                                    folder + "/device");
  }

  // What NVML says, from now on.
  void Describe(const std::string& machine) const { Write("nvml", machine); }

  // With that build of the invented library; "" = there is none.
  [[nodiscard]] node::NodeFacts Probe(const std::string& library = "fake_nvml") const {
    const std::string driver = library.empty() ? root_ : BinDir() + "/" + library;
    return node::ProbeMachine({sys(), root_ + "/proc", driver});
  }

 private:
  static std::string Root() {
    static int count = 0;
    return testing::TempDir() + "machine_" + std::to_string(getpid()) + "_" +
           std::to_string(count++);
  }

  const std::string root_;
};

}  // namespace berth::test
