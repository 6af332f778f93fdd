// SPDX-License-Identifier: Apache-2.0
#include "server/settings/config_file.h"

#include <openssl/evp.h>
#include <sys/stat.h>
#include <chrono>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "config/load.h"
#include "server/why/plan_request.h"

namespace berth {

namespace {

constexpr std::size_t kHashDigits = 12;

std::string HashOf(std::string_view text) { return Sha256Hex(text).substr(0, kHashDigits); }

// Reading anything but a regular file could block for ever.
Result<std::string> ReadRegularFile(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    return Fail(Errc::kNotFound, path + ": cannot be read: want a regular file");
  }
  return ReadFile(path);
}

std::optional<EarmarkLimits> EarmarksOf(const EarmarksConfig& config) {
  if (!config.keep) return std::nullopt;
  return EarmarkLimits{config.most_gpus_percent, std::chrono::minutes(config.gang_minutes),
                       std::chrono::minutes(config.reserve_after_minutes),
                       std::chrono::minutes(config.reserve_idle_minutes),
                       std::chrono::minutes(config.reserve_within_minutes)};
}

// Each holds some 30 KiB for its keys and a buffer, and up to 60 KiB during the handshake.
constexpr int kTlsConnections = 2500;

constexpr int kDebugConnections = 500;

int MostConnections(const ServerConfig& config) {
  const bool is_plain = config.tls.certificate_file.empty();
  return is_plain ? http::HttpServerOptions().max_connections : kTlsConnections;
}

}  // namespace

ConfigFile::Stamp ConfigFile::StampOf(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  return {{static_cast<std::int64_t>(found.st_dev), static_cast<std::int64_t>(found.st_ino),
           found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ctim.tv_sec,
           found.st_ctim.tv_nsec}};
}

Result<ConfigFile> ConfigFile::Open(std::string path, std::string listen) {
  ConfigFile file(std::move(path), std::move(listen));
  std::string text;
  if (file.path_.empty()) {
    text = PrintConfig(DefaultConfig());
  } else {
    file.read_ = file.looked_ = StampOf(file.path_);  // before: a later change is seen as one
    BERTH_TRY(text, ReadFile(file.path_));
  }
  BERTH_TRY(file.config_, file.Load(text));
  file.seen_ = file.hash_ = HashOf(text);
  return file;
}

Result<Config> ConfigFile::Load(const std::string& text) {
  BERTH_TRY(Config config, LoadConfig(text, path_));
  if (!listen_.empty()) config.server.listen = listen_;
  return config;
}

std::optional<ConfigReading> ConfigFile::Look() {
  if (path_.empty()) return std::nullopt;
  const Stamp stamp = StampOf(path_);
  const bool is_still = stamp == looked_;
  looked_ = stamp;
  if (stamp == read_ || !is_still) return std::nullopt;
  read_ = stamp;
  return Read();
}

ConfigReading ConfigFile::Read() {
  const Result<std::string> text = ReadRegularFile(path_);
  const std::string hash = text ? HashOf(*text) : "";
  const std::string before = std::exchange(seen_, text ? hash : text.error().message);
  const bool is_new = seen_ != before;
  if (!text) return {hash, is_new, tl::unexpected(text.error())};
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    // At the start nothing stands for the defaults; here the file is being written, or was lost.
    return {hash, is_new,
            Invalid(path_ + ":1: want a configuration, got an empty file; the settings stay")};
  }
  return {hash, is_new, Load(*text)};
}

std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  BERTH_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) ==
              1);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

Extender::Policy PolicyOf(const Config& config, std::shared_ptr<Engine> engine) {
  return {std::move(engine),
          std::chrono::seconds(config.reservation_seconds),
          static_cast<std::size_t>(config.nodes_to_score),
          {config.gangs.conventions, std::chrono::seconds(config.gangs.hold_seconds),
           static_cast<std::size_t>(MostHeldBinds(config.server)), config.gangs.may_break},
          config.gpu_nodes.guard,
          EarmarksOf(config.earmarks),
          config.make_room.keep_model};
}

ConfigReload::ConfigReload(ConfigFile file, const Parts& parts)
    : file_(std::move(file)), parts_(parts), now_(file_.config()) {
  parts_.metrics.ShowConfig(file_.hash(), false);
}

void ConfigReload::Look() {
  const std::optional<ConfigReading> reading = file_.Look();
  if (!reading) return;
  if (!reading->config) {
    Refuse(*reading);
  } else {
    Apply(reading->hash, *reading->config);
  }
}

void ConfigReload::Refuse(const ConfigReading& reading) {
  parts_.metrics.CountReload(ReloadResult::kRefused, true);
  if (!reading.is_new) return;  // the log has it
  parts_.log.Write(LogLevel::kError, "config_refused",
                   {{"hash", reading.hash}, {"error", reading.config.error().message}});
}

void ConfigReload::Apply(const std::string& hash, const Config& wanted) {
  const Config next = Reloaded(now_, wanted);
  const bool changes = next != now_;
  if (!SamePolicy(now_, next)) {
    ApplyPolicy(next);
  } else {
    parts_.extender.Use(PolicyOf(next, parts_.extender.policy()->engine));
  }
  if (parts_.on_make_room && next.make_room != now_.make_room) parts_.on_make_room(next);
  // After the policy: a class may name a profile that is new.
  if (parts_.on_classes && next.workload_classes != now_.workload_classes) parts_.on_classes(next);
  parts_.log.SetLevel(LevelNamed(next.log_level));
  now_ = next;
  const std::vector<std::string> waiting = NeedsRestart(now_, wanted);
  parts_.metrics.ShowConfig(hash, !waiting.empty());
  parts_.metrics.CountReload(changes ? ReloadResult::kApplied : ReloadResult::kUnchanged, false);
  parts_.log.Write(LogLevel::kInfo, changes ? "config_applied" : "config_unchanged",
                   {{"hash", hash}, {"profile", now_.profile}});
  if (!waiting.empty()) {
    parts_.log.Write(LogLevel::kWarn, "config_needs_restart",
                     {{"hash", hash}, {"settings", Join(waiting, ", ")}});
  }
}

void ConfigReload::ApplyPolicy(const Config& next) {
  // Neither of these answers requests: without a background they are complete at once.
  const std::shared_ptr<const Snapshot> snapshot = parts_.extender.Current();
  const std::shared_ptr<Engine> before = EngineFor(now_, parts_.mix, *snapshot),
                                after = EngineFor(next, parts_.mix, *snapshot);
  const DecisionChanges changes =
      CompareDecisions(parts_.extender.recent_decisions().All(), *before, *after);
  parts_.extender.Use(PolicyOf(next, EngineFor(next, parts_.mix, *snapshot, parts_.background)));
  parts_.metrics.ShowDecisionsChanged(changes.ratio());
  parts_.log.Write(LogLevel::kInfo, "policy_changed",
                   {{"from", now_.profile},
                    {"to", next.profile},
                    {"decisions_compared", changes.compared},
                    {"decisions_changed", changes.changed}});
}

int MostHeldBinds(const ServerConfig& config) { return MostConnections(config) / 4 * 3; }

http::HttpServerOptions ServiceOptions(const ServerConfig& config, Log& log) {
  http::HttpServerOptions options;
  options.listen = config.listen;
  options.threads = config.threads;
  options.max_body_bytes = static_cast<std::size_t>(config.max_body_bytes);
  options.max_connections = MostConnections(config);
  if (!config.tls.certificate_file.empty()) {
    http::TlsOptions tls;
    tls.certificate_file = config.tls.certificate_file;
    tls.key_file = config.tls.key_file;
    tls.client_ca_file = config.tls.client_ca_file;
    tls.on_reload = [&log](const Status& status) {
      if (status) {
        log.Write(LogLevel::kInfo, "certificate_reloaded", {});
      } else {
        log.Write(LogLevel::kError, "certificate_refused", {{"error", status.error().message}});
      }
    };
    options.tls = std::move(tls);
  }
  return options;
}

http::HttpServerOptions DebugOptions(const ServerConfig& config) {
  http::HttpServerOptions options;
  options.listen = config.debug_listen;
  options.threads = 1;
  options.max_body_bytes = wire::kMostPlanBytes;
  options.max_request_bytes = kDebugRequestBytes;
  options.max_answer_bytes = kDebugAnswerBytes;
  options.max_connections = kDebugConnections;
  return options;
}

}  // namespace berth
