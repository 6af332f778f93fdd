// SPDX-License-Identifier: Apache-2.0
#include "node/interposer/interposer.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace berth::node {
namespace {

constexpr Duration kMostConnect = std::chrono::seconds(2);
constexpr Duration kLookAtHealth = std::chrono::seconds(5);
constexpr Duration kMostLook = std::chrono::milliseconds(500);
constexpr Duration kMostUntilAnew = std::chrono::seconds(2);
constexpr Duration kKeepAgain = std::chrono::seconds(1);

grpc::Status ToGrpc(const Status& status) {
  if (status) return grpc::Status::OK;
  const auto code = status.error().code == Errc::kInvalidArgument
                        ? grpc::StatusCode::INVALID_ARGUMENT
                        : grpc::StatusCode::UNAVAILABLE;
  return {code, "berth-node: " + status.error().message};
}

}  // namespace

Interposer::Interposer(InterposerOptions options, DeviceChooser& chooser,
                       InterposerReports& reports, CallWatch& calls, Log& log)
    : folder_(options.folder),
      reports_(reports),
      calls_(calls),
      log_(log),
      watch_(options.folder),
      context_{options.folder, options.lift_numa,         chooser, calls,
               reports,        [this] { watch_.Wake(); }, false} {}

Interposer::~Interposer() { StopServer(server_); }

void Interposer::Stop() {
  stop_ = true;
  watch_.Wake();
}

void Interposer::KubeletKeepsBoth(PodResources& kubelet) {
  if (context_.lift_numa) return;  // the plugin itself would say its NUMA nodes
  kubelet_ = &kubelet;
  context_.stand_by = true;
  watch_.Wake();
}

void Interposer::Close(const ClosedDevices& closed) {
  for (const auto& proxy : Proxies()) {
    const auto found = closed.find(proxy->address().resource);
    proxy->Close(found == closed.end() ? ClosedDevices::mapped_type() : found->second);
  }
}

Status Interposer::Run() {
  BERTH_TRY_STATUS(folder_.Prepare());
  watch_.KubeletIsNew();  // the one that is there is no news
  TakeOverAll();
  BERTH_TRY(server_, ServeOn(folder_.worker_socket(), *this));
  log_.Write(LogLevel::kInfo, "serving", {{"socket", folder_.plugin_socket()}});
  while (!stop_) {
    if (watch_.KubeletIsNew()) KubeletIsNew();
    // A worker that is killed once the kubelet has ours leaves the plugins to the guard.
    KeepPlugins(Instant::clock::now());
    const Instant next = Upkeep();
    const Instant now = Instant::clock::now();
    const Instant anew = StartPluginsAnew(now);
    KeepPlugins(now);
    Report();
    watch_.Wait(std::min({next, anew, next_keep_}));
  }
  KeepPlugins(Instant::clock::now());
  StopServer(server_);
  const MutexLock lock(mutex_);
  proxies_.clear();
  return {};
}

grpc::Status Interposer::Register(grpc::ServerContext* /*call*/,
                                  const v1beta1::RegisterRequest* request,
                                  v1beta1::Empty* /*response*/) {
  const CallWatch::Call call(calls_, std::chrono::seconds(15));
  const PluginAddress plugin = {request->resource_name(),
                                request->endpoint(),
                                {request->options().pre_start_required(),
                                 request->options().get_preferred_allocation_available()},
                                ""};
  Status accepted;
  if (request->version() != kPluginVersion) {
    accepted = Invalid("version: want v1beta1, got \"" + request->version().substr(0, 20) + "\"");
  } else {
    accepted = Accept(plugin);
  }
  if (!accepted) {
    log_.Write(
        LogLevel::kWarn, "plugin_refused",
        {{"resource", plugin.resource.substr(0, 100)}, {"problem", accepted.error().message}});
  }
  return ToGrpc(accepted);
}

Status Interposer::Accept(const PluginAddress& plugin) {
  BERTH_TRY_STATUS(CheckResourceName(plugin.resource));
  BERTH_TRY_STATUS(CheckEndpoint(plugin.endpoint));
  BERTH_TRY_STATUS(TakeOver(plugin));
  log_.Write(LogLevel::kInfo, "plugin_registered",
             {{"resource", plugin.resource}, {"endpoint", plugin.endpoint}});
  reports_.PluginRegistered();
  return {};
}

Status Interposer::TakeOver(const PluginAddress& plugin) {
  const MutexLock one_at_a_time(registering_);
  {
    const MutexLock lock(mutex_);
    if (!proxies_.contains(plugin.resource) && proxies_.size() >= kMostResources) {
      // The kubelet can have it without us.
      log_.Write(LogLevel::kWarn, "too_many_resources", {{"resource", plugin.resource}});
      return RegisterWithKubelet(folder_.kubelet_socket(), plugin, kMostConnect);
    }
  }
  BERTH_TRY(std::shared_ptr<Upstream> upstream, Connect(plugin));
  return upstream ? Use(std::move(upstream)) : Status();
}

// The plugin's socket is in the kubelet's folder, or in ours if the plugin sees ours as that.
// nullptr: we read its list already, and another stream would leave a reader (resource_proxy.h).
Result<std::shared_ptr<Upstream>> Interposer::Connect(const PluginAddress& plugin) {
  std::string name = plugin.endpoint;
  if (name.starts_with("berth/")) name = name.substr(name.find('/') + 1);
  std::array<std::string, 2> endpoints = {name, "berth/" + name};
  const auto path = [this](const std::string& endpoint) {
    return folder_.kubelet_folder() + "/" + endpoint;
  };
  if (MadeAt(path(endpoints[1])) > MadeAt(path(endpoints[0])))
    std::swap(endpoints[0], endpoints[1]);
  const std::int64_t made = MadeAt(path(endpoints[0]));
  for (const auto& proxy : Proxies()) {
    const bool same = proxy->address().resource == plugin.resource;
    if (same && proxy->Reads(endpoints[0], made)) return nullptr;
  }
  Result<std::shared_ptr<Upstream>> connected;
  for (const std::string& endpoint : endpoints) {
    const bool there = MadeAt(path(endpoint)) != 0;
    if (!there && endpoint != endpoints[0]) continue;
    PluginAddress address = plugin;
    address.endpoint = endpoint;
    Result<std::shared_ptr<Upstream>> tried = Upstream::Connect(
        path(endpoint), std::move(address), there ? kMostConnect : Duration::zero());
    if (tried || !connected.value_or(nullptr)) connected = std::move(tried);
    if (connected) break;
  }
  return connected;
}

Status Interposer::Use(std::shared_ptr<Upstream> plugin) {
  std::shared_ptr<ResourceProxy> proxy;
  {
    const MutexLock lock(mutex_);
    std::shared_ptr<ResourceProxy>& place = proxies_[plugin->address().resource];
    if (!place) place = std::make_shared<ResourceProxy>(context_, plugin->address().resource);
    proxy = place;
  }
  proxy->Use(std::move(plugin));
  watch_.Wake();
  return {};
}

void Interposer::TakeOverAll() {
  for (const PluginAddress& plugin : ReadPlugins(folder_.plugin_file())) {
    const Status taken = TakeOver(plugin);
    log_.Write(LogLevel::kInfo, taken ? "plugin_taken_over" : "plugin_not_there",
               {{"resource", plugin.resource}, {"problem", taken ? "" : taken.error().message}});
  }
}

// It also brings plugins that found nobody and wait, and those that the worker before knew and that
// are there under another name. The kubelet has our streams by then, so that it misses nothing.
Instant Interposer::StartPluginsAnew(Instant now) {
  if (anew_at_ == Instant::max()) return anew_at_;
  if (anew_at_ == Instant{}) anew_at_ = now + kMostUntilAnew;
  const auto proxies = Proxies();
  const bool in_path = std::ranges::all_of(proxies, &ResourceProxy::InPath);
  if (now < anew_at_ && !in_path && watch_.KubeletIsThere()) return anew_at_;
  anew_at_ = Instant::max();
  for (const auto& proxy : proxies) proxy->StartsAnew(now);
  ResetPlugins();
  return anew_at_;
}

void Interposer::KubeletIsNew() {
  log_.Write(LogLevel::kInfo, "kubelet_started", {});
  for (const auto& proxy : Proxies()) proxy->KubeletIsNew();
  ResetPlugins();
}

void Interposer::ResetPlugins() {
  if (const Status reset = folder_.ResetPlugins(); !reset) {
    log_.Write(LogLevel::kError, "plugins_not_reset", {{"problem", reset.error().message}});
  }
}

std::vector<std::shared_ptr<ResourceProxy>> Interposer::Proxies() {
  const MutexLock lock(mutex_);
  std::vector<std::shared_ptr<ResourceProxy>> proxies;
  for (const auto& [resource, proxy] : proxies_) proxies.push_back(proxy);
  return proxies;
}

Instant Interposer::Upkeep() {
  const Instant now = Instant::clock::now();
  Instant next = now + std::chrono::minutes(1);
  {
    const MutexLock lock(mutex_);
    std::erase_if(proxies_, [](const auto& entry) { return entry.second->Forgotten(); });
  }
  if (!watch_.KubeletIsThere()) return next;  // the watch wakes us when it comes
  for (const auto& proxy : Proxies()) next = std::min(next, proxy->Upkeep(now));
  return std::min(next, LookAtHealth(now));
}

Instant Interposer::LookAtHealth(Instant now) {
  PodResources* const kubelet = kubelet_;
  if (kubelet == nullptr || Proxies().empty()) return now + kLookAtHealth;
  if (now < next_look_at_health_) return next_look_at_health_;
  next_look_at_health_ = now + kLookAtHealth;
  Result<DevicesByResource> healthy = kubelet->Allocatable(kMostLook);
  if (!healthy) return next_look_at_health_;
  for (const auto& proxy : Proxies()) {
    proxy->KubeletHas((*healthy)[proxy->address().resource], now);
  }
  return next_look_at_health_;
}

void Interposer::KeepPlugins(Instant now) {
  std::vector<PluginAddress> plugins;
  for (const auto& proxy : Proxies()) plugins.push_back(proxy->address());
  std::string text = PluginsText(plugins);
  next_keep_ = Instant::max();
  if (text == plugins_text_) return;
  const Status written = WritePlugins(folder_.plugin_file(), plugins);
  const std::string problem = written ? "" : written.error().message;
  if (problem != not_kept_ && !written) {
    log_.Write(LogLevel::kError, "plugins_not_kept", {{"problem", problem}});
  }
  not_kept_ = problem;
  if (written) {
    plugins_text_ = std::move(text);
  } else {
    next_keep_ = now + kKeepAgain;
  }
}

void Interposer::Report() {
  std::set<std::string> carried;
  for (const auto& proxy : Proxies()) {
    if (proxy->InPath()) carried.insert(proxy->address().resource);
  }
  if (carried == carried_) return;
  carried_ = carried;
  log_.Write(LogLevel::kInfo, "carries_out", {{"resources", Join(carried, ",")}});
  reports_.Carries(std::move(carried));
}

}  // namespace berth::node
