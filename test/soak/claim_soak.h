// SPDX-License-Identifier: Apache-2.0
//
// ClaimSoak: claims for GPUs of DRA under stress. Berth, a kube-scheduler, a foreign allocator and
// Kubernetes' claim controller act on one API server, one random step after the other; watches lag,
// writes fail or lose their answers, and others act while a write of Berth is on its way.
//
// In every other world Berth chooses the devices of claims (dra.chooseDevices). In the others pods
// ask for the name of a resource, on nodes of DRA and of a device plugin: kube-scheduler makes the
// claims, and Berth chooses nodes.
//
// Berth is killed among its writes, alone or of a gang: kube-scheduler, whose filter is ignorable,
// goes on with the devices that it had chosen for the pod it was asking about. It is taken to have
// seen what was written before it looks at the next pod.
//
// What must hold: no device is in two claims by Berth's doing, no GPU of a device plugin has two
// pods, and once all is calm no claim is allocated for a pod that is not there. A foreign allocator
// whose write Berth's watch has not shown yet may collide with Berth; that is counted.
//
// The same seed takes the same steps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace berth::test {

class ClaimSoak {
 public:
  explicit ClaimSoak(std::uint64_t seed);
  ~ClaimSoak();

  // False: something that must never happen did.
  bool Step();
  [[nodiscard]] const std::string& failure() const;
  // What happened how often.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const;

 private:
  class World;
  std::unique_ptr<World> world_;
};

}  // namespace berth::test
