// SPDX-License-Identifier: Apache-2.0
#include "node/guard/guard.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace berth::node {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             Instant::clock::now().time_since_epoch())
      .count();
}

Error HeartbeatProblem(Errc code) {
  return {code, "heartbeat: " + std::generic_category().message(errno)};
}

// The first line of a range: "7f00-7f10 r-xp 00000000 08:01 1234   /lib/libc.so.6".
bool ParseRange(const std::string& line, MappedRange& range, bool& wanted) {
  unsigned long long begin = 0;
  unsigned long long end = 0;
  char rights[5] = {};
  unsigned long long inode = 0;
  const int read =
      std::sscanf(line.c_str(), "%llx-%llx %4s %*x %*x:%*x %llu", &begin, &end, rights, &inode);
  if (read != 4) return false;
  range = {static_cast<std::uintptr_t>(begin), static_cast<std::uintptr_t>(end)};
  const std::string_view may(rights);
  wanted = inode != 0 && (may == "r-xp" || may == "r--p");
  return true;
}

constexpr Duration kKubeletLook =
    std::chrono::milliseconds(12);  // the kubelet answers 100 in a second
constexpr Duration kMostForTheEnd = std::chrono::milliseconds(300);
constexpr Duration kMostForDevices = std::chrono::milliseconds(400);
constexpr Duration kMostPerCall = std::chrono::seconds(1);
constexpr Duration kEndIsSeen = std::chrono::milliseconds(60);  // of the worker, by the kubelet
constexpr int kMostTries = 6;

// Waits until the kubelet's number of devices is 0, or is not. The number; 0 where it does not say.
std::size_t WaitForDevices(PodResources& kubelet, const std::string& resource, bool some,
                           Instant until) {
  while (true) {
    const auto healthy = kubelet.Allocatable(kMostPerCall);
    std::size_t devices = 0;
    if (healthy) {
      const auto found = healthy->find(resource);
      devices = found == healthy->end() ? 0 : found->second.size();
      if ((devices > 0) == some) return devices;
    }
    if (Instant::clock::now() >= until) return devices;
    std::this_thread::sleep_for(kKubeletLook);
  }
}

HandedBack HandBackOne(const PluginAddress& plugin, PodResources& kubelet,
                       const HandBackOptions& options, Instant end) {
  HandedBack result;
  result.plugin = plugin;
  if (MadeAt(options.folder + "/" + plugin.endpoint) == 0) {
    result.problem = "the plugin's socket is not there";
    return result;
  }
  for (int attempt = 0; attempt < kMostTries; ++attempt) {
    const Status registered = RegisterDirectly(options.folder, result.plugin, kMostPerCall);
    result.problem = registered ? "" : registered.error().message;
    result.registered = result.registered || registered;
    const Instant limit = std::min(end, Instant::clock::now() + kMostForDevices);
    result.devices = WaitForDevices(kubelet, plugin.resource, true, limit);
    if ((result.registered && result.devices > 0) || Instant::clock::now() >= end) break;
  }
  if (result.registered && result.devices > 0) result.problem.clear();
  return result;
}

constexpr const char* kThisProgram = "/proc/self/exe";

// In the new process, which has this thread alone.
[[noreturn]] void Become(char* const* arguments, pid_t parent, int descriptor) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (descriptor >= 0) fcntl(descriptor, F_SETFD, 0);
  execv(kThisProgram, arguments);
  _exit(1);
}

constexpr Duration kFirstRestartPause = std::chrono::milliseconds(250);  // after two quick ends
constexpr Duration kLongestRestartPause = std::chrono::seconds(5);
constexpr Duration kLasted = std::chrono::seconds(2);  // a worker after which there is no pause
constexpr Duration kMostForTheWorker = std::chrono::seconds(2);  // to end by itself
constexpr Duration kMostHandBack = std::chrono::seconds(6);
constexpr Duration kMostWithdraw = std::chrono::seconds(4);
constexpr Duration kLockLook = std::chrono::milliseconds(50);

std::int64_t Millis(Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

std::vector<std::string> Command(const char* name, const NodeOptions& options) {
  std::vector<std::string> arguments = Arguments(options);
  arguments.insert(arguments.begin(), name);
  return arguments;
}

}  // namespace

Result<Heartbeat> Heartbeat::Create() {
  const int descriptor = memfd_create("berth-heartbeat", 0);
  if (descriptor < 0 || ftruncate(descriptor, kPageBytes) != 0) {
    return tl::unexpected(HeartbeatProblem(Errc::kUnavailable));
  }
  return Map(descriptor);
}

Result<Heartbeat> Heartbeat::Join(int descriptor) { return Map(descriptor); }

Result<Heartbeat> Heartbeat::Map(int descriptor) {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (page == MAP_FAILED) return tl::unexpected(HeartbeatProblem(Errc::kInvalidArgument));
  return Heartbeat(descriptor, static_cast<Page*>(page));
}

Heartbeat::Heartbeat(Heartbeat&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      page_(std::exchange(other.page_, nullptr)) {}

Heartbeat::~Heartbeat() {
  if (page_ == nullptr) return;
  munmap(page_, kPageBytes);
  close(descriptor_);
}

void Heartbeat::Beat() { page_->last_ns = NowNs(); }

void Heartbeat::Reset() { page_->last_ns = 0; }

std::optional<Duration> Heartbeat::Age() const {
  const std::int64_t last = page_->last_ns;
  if (last == 0) return std::nullopt;
  return std::chrono::nanoseconds(NowNs() - last);
}

void Heartbeat::SetKubeletKeepsBoth(bool keeps) { page_->keeps_both = keeps ? 1 : 0; }

bool Heartbeat::KubeletKeepsBoth() const { return page_->keeps_both == 1; }

std::vector<MappedRange> CleanFileRanges(std::string_view smaps) {
  constexpr std::string_view kWritten = "Anonymous:";
  std::istringstream lines{std::string(smaps)};
  std::vector<MappedRange> ranges;
  MappedRange range;
  bool wanted = false;
  for (std::string line; std::getline(lines, line);) {
    if (ParseRange(line, range, wanted)) continue;
    if (!wanted || !line.starts_with(kWritten)) continue;
    int kib = -1;
    std::istringstream(line.substr(kWritten.size())) >> kib;
    if (kib == 0) ranges.push_back(range);
  }
  return ranges;
}

void TrimResident() {
  std::ifstream file("/proc/self/smaps");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (const MappedRange& range : CleanFileRanges(text)) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel writes addresses as numbers.
    madvise(reinterpret_cast<void*>(range.begin), range.end - range.begin, MADV_DONTNEED);
  }
}

char StateLetter(std::string_view stat) {
  const std::size_t end = stat.rfind(") ");
  return end == std::string_view::npos || end + 2 >= stat.size() ? '\0' : stat[end + 2];
}

ProcessState StateOf(pid_t process) {
  std::error_code code;
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  bool any = false;
  bool busy = false;
  for (std::filesystem::directory_iterator task(tasks, code), end; !code && task != end;
       task.increment(code)) {
    std::ifstream file(task->path() / "stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const char state = StateLetter(text);
    if (state == 'T' || state == 't') return ProcessState::kStopped;
    any = any || (state != '\0' && state != 'Z' && state != 'X');
    busy = busy || state == 'R' || state == 'D';
  }
  if (!any) return ProcessState::kGone;
  return busy ? ProcessState::kBusy : ProcessState::kSleeping;
}

std::vector<HandedBack> HandBack(const std::vector<PluginAddress>& plugins, PodResources& kubelet,
                                 const HandBackOptions& options) {
  const Instant end = Instant::clock::now() + options.limit;
  RemoveDirectLinks(options.folder);
  if (options.when == HandBackWhen::kWorkerGone) {
    const Instant seen = std::min(end, Instant::clock::now() + kMostForTheEnd);
    for (const PluginAddress& plugin : plugins) {
      WaitForDevices(kubelet, plugin.resource, false, seen);
    }
  }
  if (options.when == HandBackWhen::kLastLook) std::this_thread::sleep_for(kEndIsSeen);
  std::vector<HandedBack> results;
  for (const PluginAddress& plugin : plugins) {
    const bool may_have =
        options.when == HandBackWhen::kLastLook || IsDirect(options.folder, plugin);
    const std::size_t devices =
        may_have ? WaitForDevices(kubelet, plugin.resource, true, Instant::clock::now()) : 0;
    results.push_back(devices > 0 ? HandedBack{plugin, true, devices, ""}
                                  : HandBackOne(plugin, kubelet, options, end));
  }
  return results;
}

Child::~Child() {
  if (!running()) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool Child::Start(std::vector<std::string> arguments, Duration limit, int descriptor) {
  arguments.insert(arguments.begin(), "berth-node");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process == 0) Become(pointers.data(), parent, descriptor);
  if (process < 0) return false;
  process_ = process;
  stopped_ = false;
  started_ = Instant::clock::now();
  end_ = limit == Duration::max() ? Instant::max() : started_ + limit;
  return true;
}

void Child::Signal(int signal) const {
  if (running()) kill(process_, signal);
}

bool Child::Ended() {
  if (!running()) return false;
  int status = 0;
  const pid_t found = waitpid(process_, &status, WNOHANG | WUNTRACED | WCONTINUED);
  if (found == process_ && (WIFEXITED(status) || WIFSIGNALED(status))) {
    outcome_ = WIFEXITED(status) ? "exit " + std::to_string(WEXITSTATUS(status))
                                 : "signal " + std::to_string(WTERMSIG(status));
    process_ = 0;
    return true;
  }
  if (found == process_) stopped_ = WIFSTOPPED(status);
  if (Instant::clock::now() >= end_) Signal(SIGKILL);
  return false;
}

Guard::Guard(NodeOptions options, GuardLimits limits, Log& log, Heartbeat heartbeat)
    : options_(std::move(options)),
      limits_(limits),
      log_(log),
      heartbeat_(std::move(heartbeat)),
      folder_(options_.folder),
      pause_(kFirstRestartPause),
      kubelet_(options_.folder) {}

bool Guard::WaitForSignal(Duration limit) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(limit).count();
  const timespec wait{ns / 1'000'000'000, ns % 1'000'000'000};
  const int got = sigtimedwait(&signals, nullptr, &wait);
  if (got == SIGCHLD) look_ = true;
  return got == SIGTERM || got == SIGINT;
}

// While another agent has the folder, as in an upgrade, this one waits until it has handed back.
Status Guard::TakeLock() {
  const std::string path = folder_.lock_file();
  const int lock = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return Fail(Errc::kUnavailable, path + ": " + std::generic_category().message(errno));
  }
  bool waits = false;
  while (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (!waits) log_.Write(LogLevel::kInfo, "waits_for_other_agent", {{"lock", path}});
    waits = true;
    if (WaitForSignal(kLockLook)) {
      done_ = true;
      return {};
    }
  }
  return {};  // kept until the process ends
}

Status Guard::Run() {
  BERTH_TRY_STATUS(folder_.Prepare());
  BERTH_TRY_STATUS(TakeLock());
  if (done_) return {};
  kubelet_.KubeletIsNew();  // the one that is there is no news
  StartWorker();
  TrimResident();
  for (unsigned round = 1; !done_; ++round) {
    if (WaitForSignal(limits_.beats_every) && !stopping_) Stop();
    // Signals say when a child has changed; a look now and then costs little.
    constexpr unsigned kRounds = 8;
    look_ = look_ || round % kRounds == 0 || hand_back_.running() || withdraw_.running();
    if (std::exchange(look_, false) && worker_.Ended()) {
      WorkerEnded();
    } else if (worker_.running()) {
      WatchWorker();
    }
    if (hand_back_.running() && hand_back_.Ended()) HandedBack();
    if (withdraw_.running()) withdraw_.Ended();
    if (hand_back_.running() || withdraw_.running() || worker_.running()) continue;
    if (stopping_) break;
    WatchKubelet();
    if (Instant::clock::now() >= next_start_) StartWorker();
  }
  return {};
}

void Guard::StartWorker() {
  std::vector<std::string> arguments = Command("worker", options_);
  arguments.insert(arguments.end(), {"--heartbeat", std::to_string(heartbeat_.descriptor())});
  heartbeat_.Reset();
  if (!worker_.Start(std::move(arguments), Duration::max(), heartbeat_.descriptor())) {
    log_.Write(LogLevel::kError, "worker_not_started", {});
    next_start_ = Instant::clock::now() + pause_;
    return;
  }
  log_.Write(LogLevel::kInfo, "worker_started", {{"pid", worker_.process()}});
}

const char* Guard::WhatIsWrong() const {
  if (worker_.stopped()) return "stopped";
  const std::optional<Duration> age = heartbeat_.Age();
  const Duration silent = age ? *age : Instant::clock::now() - worker_.started();
  if (silent < (age ? limits_.asleep : limits_.to_start)) return nullptr;
  switch (StateOf(worker_.process())) {
    case ProcessState::kGone:
      return nullptr;  // its end is about to be seen
    case ProcessState::kStopped:
      return "stopped";
    case ProcessState::kBusy:
      return silent < limits_.busy ? nullptr : "busy without a heartbeat";
    case ProcessState::kSleeping:
      return "hangs";
  }
  return nullptr;
}

void Guard::WatchWorker() {
  const char* wrong = WhatIsWrong();
  if (wrong == nullptr && stopping_ && Instant::clock::now() >= stop_by_) wrong = "does not end";
  if (wrong == nullptr) return;
  log_.Write(LogLevel::kError, "worker_killed", {{"pid", worker_.process()}, {"why", wrong}});
  worker_.Signal(SIGKILL);
}

void Guard::WorkerEnded() {
  ended_ = Instant::clock::now();
  const bool lasted = ended_ - worker_.started() >= kLasted;
  log_.Write(stopping_ ? LogLevel::kInfo : LogLevel::kError, "worker_ended",
             {{"outcome", worker_.outcome()}});
  pause_ = lasted ? kFirstRestartPause : std::min(pause_ * 2, kLongestRestartPause);
  next_start_ = lasted ? ended_ : ended_ + pause_ / 2;
  // Plugins that start now find the kubelet.
  if (const Status led = folder_.LeadToKubelet(); !led) {
    log_.Write(LogLevel::kError, "plugins_not_led", {{"problem", led.error().message}});
  }
  const bool kubelet_has_plugins = KubeletHasPlugins();
  if (lasted && kubelet_has_plugins && !stopping_) {
    StartWorker();  // nothing is to be handed back; the plugin chooses until it is there
    return;
  }
  const bool last_look = handed_back_early_ || kubelet_has_plugins;
  StartHandBack(last_look ? HandBackWhen::kLastLook : HandBackWhen::kWorkerGone);
  const bool back_soon = lasted && !stopping_;
  if (!options_.node_name.empty() && !back_soon) {
    withdraw_.Start(Command("withdraw", options_), kMostWithdraw);
  }
}

bool Guard::KubeletHasPlugins() const {
  if (!heartbeat_.KubeletKeepsBoth()) return false;
  const std::vector<PluginAddress> plugins = ReadPlugins(folder_.plugin_file());
  return !plugins.empty() && std::ranges::all_of(plugins, [this](const PluginAddress& plugin) {
    return IsDirect(options_.folder, plugin);
  });
}

void Guard::StartHandBack(HandBackWhen when) {
  if (hand_back_.running()) {
    look_again_ = true;
    return;
  }
  std::vector<std::string> arguments = Command("hand-back", options_);
  if (when == HandBackWhen::kWorkerServes) arguments.emplace_back("--worker-lives");
  if (when == HandBackWhen::kLastLook) arguments.emplace_back("--last-look");
  if (!hand_back_.Start(std::move(arguments), kMostHandBack)) {
    log_.Write(LogLevel::kError, "hand_back_not_started", {});
  }
}

void Guard::HandedBack() {
  log_.Write(LogLevel::kInfo, "hand_back_ended",
             {{"outcome", hand_back_.outcome()},
              {"milliseconds", Millis(Instant::clock::now() - hand_back_.started())}});
  if (stopping_ && worker_.running()) worker_.Signal(SIGTERM);
  if (std::exchange(look_again_, false)) StartHandBack(HandBackWhen::kLastLook);
}

void Guard::Stop() {
  log_.Write(LogLevel::kInfo, "stopping", {});
  stopping_ = true;
  stop_by_ = Instant::clock::now() + kMostForTheWorker;
  if (!worker_.running()) return;
  if (heartbeat_.KubeletKeepsBoth()) {
    handed_back_early_ = true;
    stop_by_ += kMostHandBack;
    StartHandBack(HandBackWhen::kWorkerServes);  // the worker ends after it
  } else {
    worker_.Signal(SIGTERM);
  }
}

// A kubelet that starts while no worker is there: plugins are to register with it.
void Guard::WatchKubelet() {
  if (!kubelet_.KubeletIsNew()) return;
  if (const Status reset = folder_.ResetPlugins(); !reset) {
    log_.Write(LogLevel::kError, "plugins_not_reset", {{"problem", reset.error().message}});
  }
}

}  // namespace berth::node
