// SPDX-License-Identifier: Apache-2.0
//
// ResourceProxy: stands for one resource between its plugin and the kubelet. It is a plugin for the
// kubelet, on a socket of its own, and the kubelet for the plugin. All calls pass through but
// GetPreferredAllocation, which the DeviceChooser answers.
//
// A plugin that goes away has kGrace to come back: its calls wait for so long, and only then its
// devices are Unhealthy, as the kubelet would have made them at once. The stream to the kubelet
// stays: a stream that ends would take a newer registration with it.
//
// NVIDIA's plugin keeps a reader for each of our streams that ended, and each of them swallows one
// change of health. So a worker has the plugins start anew, which ends the readers. A plugin
// forgets at its start which devices are unhealthy: those are held as such, until it says so itself
// or starts once more for another reason.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "node/interposer/ports.h"
#include "node/kubelet/registrar.h"
#include "node/proto/deviceplugin.grpc.pb.h"

namespace berth::node {

// Upstream: the connection to one device plugin, and its list of devices as it changes.

class Upstream {
 public:
  using OnList = std::function<void(const v1beta1::ListAndWatchResponse& list)>;
  using OnEnd = std::function<void()>;

  // Connects to the plugin at `socket`. Error: kUnavailable.
  static Result<std::shared_ptr<Upstream>> Connect(const std::string& socket, PluginAddress address,
                                                   Duration limit);
  // Ends the stream; waits for a callback that runs.
  ~Upstream();

  // Begins to read the list, on a thread of its own. Once. on_end comes once, last.
  void Watch(OnList on_list, OnEnd on_end);

  [[nodiscard]] const PluginAddress& address() const { return address_; }
  // When its socket was made (MadeAt), before we connected.
  [[nodiscard]] std::int64_t made() const { return made_; }
  // Any thread.
  [[nodiscard]] v1beta1::DevicePlugin::Stub& stub() const { return *stub_; }

 private:
  Upstream(std::shared_ptr<grpc::Channel> channel, PluginAddress address, std::int64_t made);

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
  PluginAddress address_;
  const std::int64_t made_;
  grpc::ClientContext stream_context_;
  std::thread thread_;
};

// A small gRPC server on a socket of this machine.

// Replaces what is at the path. Error: kUnavailable.
Result<std::unique_ptr<grpc::Server>> ServeOn(const std::string& path, grpc::Service& service);

// Breaks what is under way off and waits for its handlers.
void StopServer(std::unique_ptr<grpc::Server>& server);

struct ProxyContext {
  std::string folder;      // of the kubelet's socket
  bool lift_numa = false;  // do not pass NUMA nodes on
  DeviceChooser& chooser;
  CallWatch& calls;
  InterposerReports& reports;
  std::function<void()> wake;          // something is to be done: call Upkeep soon. Any thread.
  std::atomic<bool> stand_by = false;  // the kubelet is to have the plugins directly too
};

class ResourceProxy final : private v1beta1::DevicePlugin::Service {
 public:
  static constexpr Duration kGrace = std::chrono::milliseconds(1500);
  static constexpr Duration kForgetAfter = std::chrono::minutes(5);
  // Of a plugin that starts anew for us: for so long its devices are not missed, and its next
  // registration counts as that.
  static constexpr Duration kGraceAnew = std::chrono::seconds(5);
  static constexpr Duration kMostAnew = std::chrono::seconds(30);
  static constexpr std::size_t kMostHeld = 64;       // devices
  static constexpr std::size_t kMostHeldBytes = 64;  // of the name of each
  // The kubelet waits for the first for ever, and for the second for 30 s.
  static constexpr Duration kMostAllocate = std::chrono::seconds(30);
  static constexpr Duration kMostPreStart = std::chrono::seconds(30);

  ResourceProxy(ProxyContext& context, std::string resource);
  // Ends all streams.
  ~ResourceProxy() override;

  // Any thread. From now on this plugin is asked; the one before is left.
  void Use(std::shared_ptr<Upstream> plugin) BERTH_EXCLUDES(mutex_);

  // These on one thread only.
  // Does what is due, and returns the time by which to call it again at the latest. Registers with
  // the kubelet where there is a list and no stream; blocks for that.
  Instant Upkeep(Instant now) BERTH_EXCLUDES(mutex_);
  // Ends the streams, to register anew: the kubelet has started, and deleted our socket.
  void KubeletIsNew() BERTH_EXCLUDES(mutex_);
  // The plugin is about to start anew for us.
  void StartsAnew(Instant now) BERTH_EXCLUDES(mutex_);
  // The kubelet is to take these devices for unhealthy, until this is called without them. Any
  // thread.
  void Close(ClosedDevices::mapped_type devices) BERTH_EXCLUDES(mutex_);

  // What the kubelet has of the resource: the healthy devices. Where it has the plugin directly
  // too, a plugin may say to it alone which device is unhealthy.
  void KubeletHas(const std::vector<std::string>& healthy, Instant now) BERTH_EXCLUDES(mutex_);

  // Any thread.
  [[nodiscard]] bool InPath() const BERTH_EXCLUDES(mutex_);     // the kubelet reads our list
  [[nodiscard]] bool Forgotten() const BERTH_EXCLUDES(mutex_);  // the plugin is gone for long
  [[nodiscard]] PluginAddress address() const BERTH_EXCLUDES(mutex_);  // the plugin's own
  // Whether it reads the list of the plugin with that socket, made then.
  [[nodiscard]] bool Reads(const std::string& endpoint, std::int64_t made) const
      BERTH_EXCLUDES(mutex_);

 private:
  using List = std::shared_ptr<const v1beta1::ListAndWatchResponse>;
  // What the kubelet gets that asks for our options.
  enum class Options {
    kAnswer,
    kWait,   // it is to wait, until kAnswer
    kAsked,  // it waits
  };

  grpc::Status GetDevicePluginOptions(grpc::ServerContext* call, const v1beta1::Empty* request,
                                      v1beta1::DevicePluginOptions* response) override;
  grpc::Status ListAndWatch(grpc::ServerContext* call, const v1beta1::Empty* request,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override;
  grpc::Status GetPreferredAllocation(grpc::ServerContext* call,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override;
  grpc::Status Allocate(grpc::ServerContext* call, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override;
  grpc::Status PreStartContainer(grpc::ServerContext* call,
                                 const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse* response) override;

  void TakeList(std::uint64_t generation, v1beta1::ListAndWatchResponse list);
  void PluginEnded(std::uint64_t generation);
  void SetList(v1beta1::ListAndWatchResponse list) BERTH_REQUIRES(mutex_);
  void ShowList() BERTH_REQUIRES(mutex_);
  bool IsShut(const std::string& device) const BERTH_REQUIRES(mutex_);
  void HoldSick(const v1beta1::ListAndWatchResponse& list) BERTH_REQUIRES(mutex_);
  void TakeHeld(const PluginAddress& plugin, std::int64_t made) BERTH_REQUIRES(mutex_);
  bool IsAnew() const BERTH_REQUIRES(mutex_);
  // Waits for a plugin for at most kGrace; nullptr: there is none.
  std::shared_ptr<Upstream> Plugin() BERTH_EXCLUDES(mutex_);
  // Asks the plugin. Where its socket is gone though its stream is not yet seen to end, since it
  // starts anew for us, the one that comes is asked.
  grpc::Status Ask(const grpc::ServerContext& call,
                   const std::function<grpc::Status(Upstream& plugin)>& question)
      BERTH_EXCLUDES(mutex_);
  std::vector<std::string> Preferred(const v1beta1::ContainerPreferredAllocationRequest& request);
  bool Renews() BERTH_EXCLUDES(mutex_);
  Instant StandBy(Instant now) BERTH_EXCLUDES(mutex_);
  void LeaveOlder() BERTH_EXCLUDES(mutex_);
  Status RegisterBoth(PluginAddress& plugin) BERTH_EXCLUDES(mutex_);
  void SetOptions(Options options) BERTH_EXCLUDES(mutex_);
  bool WaitUntilAsked() BERTH_EXCLUDES(mutex_);
  void WaitForCalls();
  Instant Register(Instant now) BERTH_EXCLUDES(mutex_);
  void SkipNames();
  void NextName() BERTH_EXCLUDES(mutex_);
  void Renew() BERTH_EXCLUDES(mutex_);

  ProxyContext& context_;
  const std::string resource_;
  std::unique_ptr<grpc::Server> server_;  // of the thread of Upkeep
  std::unique_ptr<grpc::Server> older_;   // of the registration before; of the thread of Upkeep
  unsigned registration_ = 0;             // of the thread of Upkeep: makes the socket's name new
  std::uint64_t stood_by_ = 0;            // of the thread of Upkeep: the generation tried last
  Instant next_stand_by_{};               // of the thread of Upkeep

  mutable Mutex mutex_;
  CondVar changed_;
  std::shared_ptr<Upstream> plugin_ BERTH_GUARDED_BY(mutex_);
  PluginAddress address_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t generation_ BERTH_GUARDED_BY(mutex_) = 0;  // of plugin_
  bool plugin_ended_ BERTH_GUARDED_BY(mutex_) = true;
  Instant gone_since_ BERTH_GUARDED_BY(mutex_){};
  ClosedDevices::mapped_type sick_ BERTH_GUARDED_BY(mutex_);  // by the last list; no replicas
  ClosedDevices::mapped_type held_
      BERTH_GUARDED_BY(mutex_);                  // of them: the plugin has forgotten them
  Instant anew_ BERTH_GUARDED_BY(mutex_){};      // the plugin began to start anew for us
  bool renew_ BERTH_GUARDED_BY(mutex_) = false;  // the registration
  bool marked_gone_ BERTH_GUARDED_BY(mutex_) = false;
  v1beta1::ListAndWatchResponse said_ BERTH_GUARDED_BY(mutex_);  // of its devices
  ClosedDevices::mapped_type closed_ BERTH_GUARDED_BY(mutex_);
  // What the kubelet is to have: said_ without what is held or closed. nullptr: none came yet.
  List list_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t list_number_ BERTH_GUARDED_BY(mutex_) = 0;
  Instant listed_ BERTH_GUARDED_BY(mutex_){};  // when the list was new
  int streams_ BERTH_GUARDED_BY(mutex_) = 0;   // to the kubelet
  Instant since_ BERTH_GUARDED_BY(mutex_){};   // the newest of them
  Instant asked_ BERTH_GUARDED_BY(mutex_){};   // by the kubelet, what is preferred
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  Instant newest_ BERTH_GUARDED_BY(mutex_){};       // registration beside another one
  Instant ends_before_ BERTH_GUARDED_BY(mutex_){};  // streams that began before are to end
  Options options_ BERTH_GUARDED_BY(mutex_) = Options::kAnswer;
  Instant next_try_ BERTH_GUARDED_BY(mutex_){};
  Duration pause_ BERTH_GUARDED_BY(mutex_) = kFirstPause;

  static constexpr Duration kFirstPause = std::chrono::milliseconds(20);
};

}  // namespace berth::node
