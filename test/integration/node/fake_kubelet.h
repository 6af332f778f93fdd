// SPDX-License-Identifier: Apache-2.0
//
// FakeKubelet: the part of a kubelet that device plugins see, as that of Kubernetes 1.36 does it:
// the end of a plugin's stream takes whatever plugin is registered for the resource then. With
// keeps_both as that of 1.37: it asks the one that registered last, and goes on with another one
// where one ends, the oldest here.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "node/proto/deviceplugin.grpc.pb.h"
#include "node/proto/podresources.grpc.pb.h"

namespace berth::test {

class FakeKubelet final {
 public:
  struct Ask {
    std::string pod, container, resource;
    int devices = 1;
    std::vector<std::string> must;
    bool listed = true;  // init containers are not
  };

  explicit FakeKubelet(std::string folder);
  ~FakeKubelet();

  // Ends and begins anew: sockets in the folder are gone, what pods have stays.
  void Restart();

  // The pod is in the list from now on, with these containers.
  void AddPod(const std::string& pod, const std::vector<std::string>& containers);
  // What a kubelet does for a container: asks what is preferred, allocates. Error: the pod would be
  // refused.
  Result<std::vector<std::string>> Admit(const Ask& ask);
  void RemovePod(const std::string& pod);

  [[nodiscard]] std::size_t Allocatable(const std::string& resource);
  // Whether all that serve the resource have sent their devices.
  [[nodiscard]] bool IsTold(const std::string& resource);
  [[nodiscard]] std::string Endpoint(const std::string& resource);  // that serves now; "" = none
  // All that it has asked from some time on, in order: after each registration and each end.
  [[nodiscard]] std::vector<std::string> Asked(const std::string& resource);
  [[nodiscard]] bool HasNuma(const std::string& resource);
  [[nodiscard]] int Registrations(const std::string& resource);
  std::atomic<bool> lists_fail = false;
  std::atomic<bool> keeps_both = false;
  std::atomic<int> lists = 0;  // that were asked for

  [[nodiscard]] std::string socket() const { return folder_ + "/kubelet.sock"; }
  [[nodiscard]] std::string pod_resources() const { return folder_ + "/pods/kubelet.sock"; }

 private:
  struct Client;
  class Registration;
  class Pods;
  void Serve();
  void Follow(const std::shared_ptr<Client>& client);

  const std::string folder_;
  std::unique_ptr<Registration> registration_;
  std::unique_ptr<Pods> pods_;
  std::unique_ptr<grpc::Server> registration_server_, pods_server_;
  std::vector<std::thread> threads_;

  Mutex mutex_;
  // By resource, in the order of registration; the last one is asked.
  std::map<std::string, std::vector<std::shared_ptr<Client>>> clients_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<v1beta1::Device>> devices_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> used_ BERTH_GUARDED_BY(mutex_);  // by resource
  std::map<std::string, std::vector<std::string>> asked_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, int> registrations_ BERTH_GUARDED_BY(mutex_);
  v1::ListPodResourcesResponse list_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::test
