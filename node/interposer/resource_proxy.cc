// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/resource_proxy.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <thread>
#include <utility>

namespace berth::node {
namespace {

constexpr Duration kLongestTryPause = std::chrono::seconds(2);
constexpr Duration kMostRegister = std::chrono::seconds(5);
constexpr Duration kMostStandBy = std::chrono::seconds(1);
constexpr Duration kAfterStart = std::chrono::milliseconds(500);  // of the kubelet: pods may wait
constexpr Duration kAfterQuestion = std::chrono::milliseconds(300);
constexpr Duration kNextStandBy = std::chrono::seconds(10);  // after one that failed
constexpr Duration kMostForCalls = std::chrono::seconds(1);  // to end before a new registration
constexpr Duration kOurEndIsSeen = std::chrono::milliseconds(60);  // of our stream, by the kubelet
constexpr Duration kStreamAfterRegister = std::chrono::seconds(1);
constexpr Duration kLookForCancel = std::chrono::milliseconds(400);
constexpr unsigned kMostLeft = 100;                    // sockets
constexpr const char* kAlready = "already connected";  // the kubelet's words, since 1.37
constexpr const char* kHealthy = "Healthy";
constexpr const char* kUnhealthy = "Unhealthy";
constexpr Duration kListIsTaken = std::chrono::seconds(2);  // by the kubelet
constexpr const char* kAnySocket = "0";                     // of a plugin that starts anew

grpc::Status NoPlugin(const std::string& resource) {
  return {grpc::StatusCode::UNAVAILABLE, "the device plugin of " + resource + " is away"};
}

// The caller's deadline, or ours if that is sooner; a caller who gives up ends the call.
std::unique_ptr<grpc::ClientContext> Passed(const grpc::ServerContext& call, Duration limit) {
  auto context = grpc::ClientContext::FromServerContext(call);
  context->set_deadline(std::min(call.deadline(), After(limit)));
  return context;
}

std::set<std::string> UnhealthyOf(const v1beta1::ListAndWatchResponse& list) {
  std::set<std::string> ids;
  for (const v1beta1::Device& device : list.devices()) {
    if (device.health() != kHealthy) ids.insert(device.id());
  }
  return ids;
}

bool SaysNumaNodes(const v1beta1::ListAndWatchResponse& list) {
  return std::ranges::any_of(list.devices(), [](const v1beta1::Device& device) {
    return device.has_topology() && device.topology().nodes_size() > 0;
  });
}

}  // namespace

ResourceProxy::ResourceProxy(ProxyContext& context, std::string resource)
    : context_(context), resource_(std::move(resource)) {}

ResourceProxy::~ResourceProxy() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  // The kubelet may ask us until it has seen the end of our streams.
  if (context_.stand_by && server_) std::this_thread::sleep_for(kOurEndIsSeen);
  StopServer(older_);
  StopServer(server_);
  std::shared_ptr<Upstream> last;
  const MutexLock lock(mutex_);
  last = std::exchange(plugin_, nullptr);
  ++generation_;
}

void ResourceProxy::Use(std::shared_ptr<Upstream> plugin) {
  std::shared_ptr<Upstream> before;
  Upstream* const upstream = plugin.get();
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex_);
    before = std::exchange(plugin_, std::move(plugin));
    // The kubelet learns these at a registration only.
    renew_ =
        renew_ || (before && address_.options.pre_start != upstream->address().options.pre_start);
    std::string direct = std::move(address_.direct);
    address_ = upstream->address();
    if (address_.direct.empty()) address_.direct = std::move(direct);  // IsDirect looks itself
    TakeHeld(address_, upstream->made());
    generation = ++generation_;
    plugin_ended_ = false;
    marked_gone_ = false;
    changed_.NotifyAll();
  }
  before.reset();  // ends its stream; a callback that runs takes the mutex
  upstream->Watch(
      [this, generation](const v1beta1::ListAndWatchResponse& list) { TakeList(generation, list); },
      [this, generation] { PluginEnded(generation); });
}

void ResourceProxy::TakeList(std::uint64_t generation, v1beta1::ListAndWatchResponse list) {
  if (context_.lift_numa) {
    for (v1beta1::Device& device : *list.mutable_devices()) device.clear_topology();
  }
  const bool numa = SaysNumaNodes(list);
  std::set<std::string> unhealthy;
  {
    const MutexLock lock(mutex_);
    if (generation != generation_) return;
    HoldSick(list);
    SetList(std::move(list));
    unhealthy = UnhealthyOf(*list_);
  }
  context_.reports.Unhealthy(resource_, std::move(unhealthy));
  context_.reports.NumaNodes(resource_, numa);
}

// What the plugin says itself it has not forgotten.
void ResourceProxy::HoldSick(const v1beta1::ListAndWatchResponse& list) {
  sick_.clear();
  for (const v1beta1::Device& device : list.devices()) {
    if (device.health() == kHealthy) continue;
    const std::string id(WithoutReplica(device.id()));
    held_.erase(id);
    if (sick_.size() < kMostHeld && id.size() <= kMostHeldBytes) sick_.insert(id);
  }
  sick_.insert(held_.begin(), held_.end());
}

// From the plugin before, where this one started anew for us; from the worker before, where that
// held something of this one.
void ResourceProxy::TakeHeld(const PluginAddress& plugin, std::int64_t made) {
  held_ = IsAnew() ? sick_ : decltype(held_)();
  anew_ = {};
  const std::size_t colon = std::min(plugin.sick.find(':'), plugin.sick.size());
  const std::string of = plugin.sick.substr(0, colon);
  if (of == kAnySocket) anew_ = Instant::clock::now();
  if (of == kAnySocket || of == std::to_string(made)) {
    std::istringstream ids(plugin.sick.substr(std::min(colon + 1, plugin.sick.size())));
    for (std::string id; std::getline(ids, id, ',') && held_.size() < kMostHeld;) held_.insert(id);
  }
  sick_ = held_;
}

bool ResourceProxy::IsAnew() const {
  return anew_ != Instant{} && Instant::clock::now() - anew_ < kMostAnew;
}

void ResourceProxy::StartsAnew(Instant now) {
  const MutexLock lock(mutex_);
  anew_ = now;
}

void ResourceProxy::SetList(v1beta1::ListAndWatchResponse list) {
  said_ = std::move(list);
  ShowList();
  ++list_number_;
  listed_ = Instant::clock::now();
  changed_.NotifyAll();
  context_.wake();
}

void ResourceProxy::ShowList() {
  v1beta1::ListAndWatchResponse list = said_;
  for (v1beta1::Device& device : *list.mutable_devices()) {
    if (IsShut(device.id())) device.set_health(kUnhealthy);
  }
  list_ = std::make_shared<const v1beta1::ListAndWatchResponse>(std::move(list));
}

bool ResourceProxy::IsShut(const std::string& device) const {
  const std::string_view id = WithoutReplica(device);
  return held_.contains(id) || closed_.contains(id);
}

void ResourceProxy::Close(ClosedDevices::mapped_type devices) {
  std::set<std::string> unhealthy;
  {
    const MutexLock lock(mutex_);
    if (closed_ == devices || !list_) return;
    closed_ = std::move(devices);
    SetList(std::move(said_));
    unhealthy = UnhealthyOf(*list_);
  }
  context_.reports.Unhealthy(resource_, std::move(unhealthy));
}

void ResourceProxy::PluginEnded(std::uint64_t generation) {
  const MutexLock lock(mutex_);
  if (generation != generation_) return;
  plugin_ended_ = true;
  gone_since_ = Instant::clock::now();
  changed_.NotifyAll();
  context_.wake();
}

Instant ResourceProxy::Upkeep(Instant now) {
  Instant next = StandBy(now);
  bool registers = false;
  if (Renews()) Renew();
  {
    const MutexLock lock(mutex_);
    if (plugin_ended_ && list_ && !marked_gone_) {
      next = std::max(gone_since_ + kGrace, anew_ + kGraceAnew);
      if (now >= next) {
        v1beta1::ListAndWatchResponse none = said_;
        for (v1beta1::Device& device : *none.mutable_devices()) device.set_health(kUnhealthy);
        marked_gone_ = true;
        SetList(std::move(none));
      }
    }
    if (plugin_ended_) next = std::min(next, std::max(now, gone_since_ + kForgetAfter));
    registers = list_ != nullptr && streams_ == 0;
    if (registers && now < next_try_) {
      registers = false;
      next = std::min(next, next_try_);
    }
  }
  return registers ? std::min(next, Register(now)) : next;
}

// Has the kubelet have the plugin directly too, in a moment without admissions.
Instant ResourceProxy::StandBy(Instant now) {
  const Instant nothing = now + std::chrono::hours(1);
  PluginAddress plugin;
  std::uint64_t generation = 0;
  Instant calm{};
  {
    const MutexLock lock(mutex_);
    if (plugin_ended_ || !list_ || streams_ == 0) return nothing;
    plugin = address_;
    generation = generation_;
    calm = std::max(since_ + kAfterStart, asked_ + kAfterQuestion);
  }
  if (!context_.stand_by || IsDirect(context_.folder, plugin)) return nothing;
  if (now < calm) return calm;
  if (generation == stood_by_ && now < next_stand_by_) return next_stand_by_;
  stood_by_ = generation;
  next_stand_by_ = now + kNextStandBy;
  LeaveOlder();
  if (!RegisterBoth(plugin)) return next_stand_by_;
  const MutexLock lock(mutex_);
  if (generation == generation_) address_.direct = plugin.direct;
  return nothing;
}

// Of those that are left where one ends the kubelet asks any. While the plugin was not beside us
// only ours were left; it must have seen this end before the plugin comes.
void ResourceProxy::LeaveOlder() {
  if (!older_) return;
  WaitForCalls();
  {
    const MutexLock lock(mutex_);
    ends_before_ = newest_;
    changed_.NotifyAll();
  }
  std::this_thread::sleep_for(kOurEndIsSeen);  // it may ask the older one until then
  StopServer(older_);
}

// The kubelet asks the one that connected last, which is to be us. It connects to a plugin by
// asking for its options: we keep it waiting with ours until it has connected to the plugin itself,
// and the plugin is the one that it asks for a millisecond or a few. Our registration before stays
// beside the new one, since of those that are left where one ends the kubelet asks any.
Status ResourceProxy::RegisterBoth(PluginAddress& plugin) {
  const CallWatch::Call call(context_.calls, 3 * kMostStandBy);
  PluginAddress ours = {resource_, EndpointFor(resource_, ++registration_), {}, ""};
  {
    const MutexLock lock(mutex_);
    ours.options = {address_.options.pre_start, true};
    newest_ = Instant::clock::now();
  }
  BERTH_TRY(std::unique_ptr<grpc::Server> server,
            ServeOn(context_.folder + "/" + ours.endpoint, *this));
  SetOptions(Options::kWait);
  Status registered;
  std::thread registers([this, &ours, &registered] {
    registered =
        RegisterWithKubelet(context_.folder + "/" + kKubeletSocket, ours, 2 * kMostStandBy);
  });
  const Status direct = WaitUntilAsked()
                            ? RegisterDirectly(context_.folder, plugin, kMostStandBy)
                            : Fail(Errc::kUnavailable, "the kubelet does not connect to us");
  SetOptions(Options::kAnswer);
  registers.join();
  if (registered) {
    older_ = std::exchange(server_, std::move(server));
  } else {
    StopServer(server);
    const MutexLock lock(mutex_);
    renew_ = renew_ || direct;  // it asks the plugin
  }
  return direct;
}

void ResourceProxy::SetOptions(Options options) {
  const MutexLock lock(mutex_);
  options_ = options;
  changed_.NotifyAll();
}

bool ResourceProxy::WaitUntilAsked() {
  const Instant end = Instant::clock::now() + kMostStandBy;
  const MutexLock lock(mutex_);
  while (options_ == Options::kWait && Instant::clock::now() < end) {
    changed_.WaitUntil(mutex_, end);
  }
  return options_ == Options::kAsked;
}

bool ResourceProxy::Renews() {
  const MutexLock lock(mutex_);
  return std::exchange(renew_, false);
}

Instant ResourceProxy::Register(Instant now) {
  if (!server_) SkipNames();
  const std::string endpoint = EndpointFor(resource_, registration_);
  PluginAddress ours;
  {
    const MutexLock lock(mutex_);
    ours = {resource_, endpoint, {address_.options.pre_start, true}, ""};
    pause_ = std::min(pause_ * 2, kLongestTryPause);
    next_try_ = now + pause_;
  }
  const CallWatch::Call call(context_.calls, kMostRegister + std::chrono::seconds(1));
  if (!server_) {
    Result<std::unique_ptr<grpc::Server>> server = ServeOn(context_.folder + "/" + endpoint, *this);
    if (!server) return now + kLongestTryPause;
    server_ = *std::move(server);
  }
  const Status registered =
      RegisterWithKubelet(context_.folder + "/" + kKubeletSocket, ours, kMostRegister);
  const bool stale = !registered && registered.error().message.find(kAlready) != std::string::npos;
  if (stale) NextName();
  const MutexLock lock(mutex_);
  // The kubelet asks for the list right after.
  if (registered) next_try_ = Instant::clock::now() + kStreamAfterRegister;
  return next_try_;
}

// A worker that was killed has left its sockets. The kubelet may not have seen its end yet, and one
// that refuses a name misses the end of who had it.
void ResourceProxy::SkipNames() {
  const auto path = [this](unsigned number) {
    return context_.folder + "/" + EndpointFor(resource_, number);
  };
  const unsigned first = registration_;
  while (registration_ < first + kMostLeft && MadeAt(path(registration_)) != 0) ++registration_;
  for (unsigned left = first; left < registration_; ++left) unlink(path(left).c_str());
}

// The kubelet may not have seen the end of the last stream, and refuses its name then.
void ResourceProxy::NextName() {
  ++registration_;
  KubeletIsNew();
}

void ResourceProxy::WaitForCalls() {
  const Instant end = Instant::clock::now() + kMostForCalls;
  while (!context_.calls.Idle() && Instant::clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// Of two that are left where one ends the kubelet asks any: it must have seen our end before.
void ResourceProxy::Renew() {
  WaitForCalls();
  NextName();
  const MutexLock lock(mutex_);
  if (context_.stand_by) next_try_ = Instant::clock::now() + kOurEndIsSeen;
}

void ResourceProxy::KubeletIsNew() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;  // what waits ends at once
    changed_.NotifyAll();
  }
  StopServer(older_);
  StopServer(server_);
  const MutexLock lock(mutex_);
  ending_ = false;
  pause_ = kFirstPause;
  next_try_ = {};
}

void ResourceProxy::KubeletHas(const std::vector<std::string>& healthy, Instant now) {
  const std::set<std::string, std::less<>> has(healthy.begin(), healthy.end());
  std::set<std::string> unhealthy;
  {
    const MutexLock lock(mutex_);
    const bool settled = now - std::max(listed_, since_) >= kListIsTaken;
    if (!list_ || streams_ == 0 || plugin_ended_ || !settled) return;
    bool again = false;  // it is to be told again what is held or closed
    for (v1beta1::Device& device : *said_.mutable_devices()) {
      const bool has_it = has.contains(device.id());
      const bool shut = IsShut(device.id());
      again = again || (shut && has_it);
      if (!shut) device.set_health(has_it ? kHealthy : kUnhealthy);
    }
    if (again) {
      SetList(std::move(said_));
    } else {
      ShowList();  // for the next stream
    }
    unhealthy = UnhealthyOf(*list_);
  }
  context_.reports.Unhealthy(resource_, std::move(unhealthy));
}

bool ResourceProxy::InPath() const {
  const MutexLock lock(mutex_);
  return streams_ > 0 && !marked_gone_;
}

bool ResourceProxy::Forgotten() const {
  const MutexLock lock(mutex_);
  return plugin_ended_ && Instant::clock::now() >= gone_since_ + kForgetAfter;
}

PluginAddress ResourceProxy::address() const {
  const MutexLock lock(mutex_);
  PluginAddress address = address_;
  const bool anew = IsAnew();
  std::string ids;
  for (const std::string& id : anew ? sick_ : held_) {
    if (id.find_first_of(" \t\n,") == std::string::npos) ids += (ids.empty() ? "" : ",") + id;
  }
  const std::string socket = anew || !plugin_ ? kAnySocket : std::to_string(plugin_->made());
  address.sick = ids.empty() ? "" : socket + ":" + ids;
  return address;
}

bool ResourceProxy::Reads(const std::string& endpoint, std::int64_t made) const {
  const MutexLock lock(mutex_);
  return plugin_ && !plugin_ended_ && plugin_->made() == made && address_.endpoint == endpoint;
}

std::shared_ptr<Upstream> ResourceProxy::Plugin() {
  const MutexLock lock(mutex_);
  const Instant end = std::max(Instant::clock::now() + kGrace, anew_ + kGraceAnew);
  while (plugin_ended_ && !marked_gone_ && !ending_ && Instant::clock::now() < end) {
    changed_.WaitUntil(mutex_, end);
  }
  return plugin_ended_ ? nullptr : plugin_;
}

grpc::Status ResourceProxy::Ask(const grpc::ServerContext& call,
                                const std::function<grpc::Status(Upstream& plugin)>& question) {
  grpc::Status status;
  for (int tries = 0; tries < 3; ++tries) {
    const std::shared_ptr<Upstream> plugin = Plugin();
    if (!plugin) return NoPlugin(resource_);
    status = question(*plugin);
    // A plugin that ends while it is asked says the one or the other, by what it serves with.
    const bool went = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                      (status.error_code() == grpc::StatusCode::CANCELLED && !call.IsCancelled());
    if (!went) break;
    const MutexLock lock(mutex_);
    const Instant end = anew_ + kGraceAnew;
    while (plugin_ == plugin && !plugin_ended_ && !ending_ && Instant::clock::now() < end) {
      changed_.WaitUntil(mutex_, end);
    }
    if (plugin_ == plugin && !plugin_ended_) break;
  }
  return status;
}

grpc::Status ResourceProxy::GetDevicePluginOptions(grpc::ServerContext* /*call*/,
                                                   const v1beta1::Empty* /*request*/,
                                                   v1beta1::DevicePluginOptions* response) {
  const MutexLock lock(mutex_);
  if (options_ == Options::kWait) {
    options_ = Options::kAsked;
    changed_.NotifyAll();
    const Instant end = Instant::clock::now() + 2 * kMostStandBy;
    while (options_ == Options::kAsked && !ending_ && Instant::clock::now() < end) {
      changed_.WaitUntil(mutex_, end);
    }
  }
  response->set_pre_start_required(address_.options.pre_start);
  response->set_get_preferred_allocation_available(true);
  return grpc::Status::OK;
}

grpc::Status ResourceProxy::ListAndWatch(
    grpc::ServerContext* call, const v1beta1::Empty* /*request*/,
    grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) {
  const Instant began = Instant::clock::now();
  std::uint64_t sent = 0;
  {
    const MutexLock lock(mutex_);
    ++streams_;
    since_ = began;
  }
  context_.wake();
  while (!call->IsCancelled()) {
    List list;
    {
      const MutexLock lock(mutex_);
      if (ending_ || began < ends_before_) break;
      if (list_number_ == sent) changed_.WaitUntil(mutex_, Instant::clock::now() + kLookForCancel);
      if (list_number_ != sent) list = list_;
      sent = list_number_;
    }
    if (list && !writer->Write(*list)) break;
  }
  {
    const MutexLock lock(mutex_);
    --streams_;
    const bool lasted = Instant::clock::now() - began > std::chrono::seconds(10);
    if (lasted) pause_ = kFirstPause;
    next_try_ = Instant::clock::now() + pause_;
  }
  context_.wake();
  return grpc::Status::OK;
}

std::vector<std::string> ResourceProxy::Preferred(
    const v1beta1::ContainerPreferredAllocationRequest& request) {
  PreferredQuestion question;
  question.resource = resource_;
  question.available.assign(request.available_deviceids().begin(),
                            request.available_deviceids().end());
  question.must.assign(request.must_include_deviceids().begin(),
                       request.must_include_deviceids().end());
  question.size = static_cast<std::size_t>(std::max(request.allocation_size(), 0));
  {
    const MutexLock lock(mutex_);
    question.since = since_;
    asked_ = Instant::clock::now();
  }
  const AskPlugin ask =
      [this, &request](
          const std::vector<std::string>& available) -> std::optional<std::vector<std::string>> {
    std::shared_ptr<Upstream> plugin;
    {
      const MutexLock lock(mutex_);
      if (!plugin_ended_ && address_.options.preferred_allocation) plugin = plugin_;
    }
    if (!plugin) return std::nullopt;
    v1beta1::PreferredAllocationRequest asked;
    v1beta1::ContainerPreferredAllocationRequest& one = *asked.add_container_requests();
    one = request;
    one.mutable_available_deviceids()->Assign(available.begin(), available.end());
    grpc::ClientContext context;
    context.set_deadline(After(kMostPluginPreference));
    v1beta1::PreferredAllocationResponse answer;
    const grpc::Status status = plugin->stub().GetPreferredAllocation(&context, asked, &answer);
    if (!status.ok() || answer.container_responses_size() != 1) return std::nullopt;
    const auto& ids = answer.container_responses(0).deviceids();
    return std::vector<std::string>(ids.begin(), ids.end());
  };
  return context_.chooser.Choose(question, ask);
}

grpc::Status ResourceProxy::GetPreferredAllocation(
    grpc::ServerContext* /*call*/, const v1beta1::PreferredAllocationRequest* request,
    v1beta1::PreferredAllocationResponse* response) {
  const auto containers = static_cast<Duration::rep>(request->container_requests_size());
  const CallWatch::Call call(context_.calls, kMostChoice * std::max<Duration::rep>(containers, 1));
  for (const auto& container : request->container_requests()) {
    const std::vector<std::string> ids = Preferred(container);
    response->add_container_responses()->mutable_deviceids()->Assign(ids.begin(), ids.end());
  }
  return grpc::Status::OK;
}

grpc::Status ResourceProxy::Allocate(grpc::ServerContext* call,
                                     const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) {
  const CallWatch::Call watched(context_.calls, kGraceAnew + kMostAllocate);
  const grpc::Status status = Ask(*call, [&](Upstream& plugin) {
    const auto context = Passed(*call, kMostAllocate);
    return plugin.stub().Allocate(context.get(), *request, response);
  });
  if (status.ok()) {
    for (const v1beta1::ContainerAllocateRequest& container : request->container_requests()) {
      context_.chooser.Given(resource_,
                             {container.devices_ids().begin(), container.devices_ids().end()});
    }
  }
  return status;
}

grpc::Status ResourceProxy::PreStartContainer(grpc::ServerContext* call,
                                              const v1beta1::PreStartContainerRequest* request,
                                              v1beta1::PreStartContainerResponse* response) {
  const CallWatch::Call watched(context_.calls, kGraceAnew + kMostPreStart);
  return Ask(*call, [&](Upstream& plugin) {
    const auto context = Passed(*call, kMostPreStart);
    return plugin.stub().PreStartContainer(context.get(), *request, response);
  });
}

}  // namespace berth::node
