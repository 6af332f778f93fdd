// SPDX-License-Identifier: Apache-2.0
//
// Interposer: device plugins register with it, and it registers with the kubelet in their place,
// one ResourceProxy for each resource.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "node/interposer/folder_watch.h"
#include "node/interposer/ports.h"
#include "node/interposer/resource_proxy.h"
#include "node/kubelet/registrar.h"
#include "node/proto/deviceplugin.grpc.pb.h"
#include "server/telemetry/log.h"

namespace berth::node {

struct InterposerOptions {
  std::string folder;  // "/var/lib/kubelet/device-plugins"
  bool lift_numa = false;
};

class Interposer final : private v1beta1::Registration::Service {
 public:
  // References: they live longer.
  Interposer(InterposerOptions options, DeviceChooser& chooser, InterposerReports& reports,
             CallWatch& calls, Log& log);
  ~Interposer() override;

  // Serves until Stop. Takes over the plugins that a worker before this one stood in for. Error:
  // kUnavailable where there can be no socket.
  Status Run() BERTH_EXCLUDES(mutex_);
  // Any thread.
  void Stop();
  // The kubelet keeps a plugin when another one registers for the resource (Kubernetes 1.37): it
  // has the plugins beside us from now on, so that it misses no devices where we end.
  // Its list of devices is asked for now and then.
  void KubeletKeepsBoth(PodResources& kubelet);
  // By resource the devices that the kubelet is to take for unhealthy, and no others; without the
  // number of a replica.
  void Close(const ClosedDevices& closed) BERTH_EXCLUDES(mutex_);

 private:
  grpc::Status Register(grpc::ServerContext* call, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* response) override;

  Status Accept(const PluginAddress& plugin) BERTH_EXCLUDES(mutex_, registering_);
  Status TakeOver(const PluginAddress& plugin) BERTH_EXCLUDES(mutex_, registering_);
  Result<std::shared_ptr<Upstream>> Connect(const PluginAddress& plugin);
  Status Use(std::shared_ptr<Upstream> plugin) BERTH_EXCLUDES(mutex_);
  void TakeOverAll() BERTH_EXCLUDES(mutex_);
  Instant StartPluginsAnew(Instant now) BERTH_EXCLUDES(mutex_);
  void KubeletIsNew() BERTH_EXCLUDES(mutex_);
  void ResetPlugins();
  Instant Upkeep() BERTH_EXCLUDES(mutex_);
  Instant LookAtHealth(Instant now) BERTH_EXCLUDES(mutex_);
  void KeepPlugins(Instant now) BERTH_EXCLUDES(mutex_);  // for the guard, and the next worker
  void Report() BERTH_EXCLUDES(mutex_);
  std::vector<std::shared_ptr<ResourceProxy>> Proxies() BERTH_EXCLUDES(mutex_);

  const AgentFolder folder_;
  InterposerReports& reports_;
  CallWatch& calls_;
  Log& log_;
  FolderWatch watch_;
  ProxyContext context_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<bool> stop_ = false;
  std::atomic<PodResources*> kubelet_ = nullptr;  // where it has the plugins beside us

  Mutex registering_;  // one at a time
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<ResourceProxy>> proxies_ BERTH_GUARDED_BY(mutex_);

  // The thread of Run alone.
  std::set<std::string> carried_;
  std::string plugins_text_;  // that was written
  std::string not_kept_;      // why the last one was not
  Instant next_keep_{};
  Instant anew_at_{};  // at the latest the plugins are to start anew; max: they were told to
  Instant next_look_at_health_{};
};

}  // namespace berth::node
