// SPDX-License-Identifier: Apache-2.0
#include "server/commands/plan_command.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "config/parse_yaml.h"
#include "server/commands/ask_server.h"
#include "server/commands/cluster_of_file.h"
#include "server/pages/plan_page.h"
#include "server/why/plan_request.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

Result<std::string> TextIn(const std::string& file) {
  if (file != "-") return ReadFile(file, wire::kMostPlanBytes);
  std::string text = ReadStandardInput(wire::kMostPlanBytes);
  if (text.size() > wire::kMostPlanBytes) {
    return tl::unexpected(TooLarge("standard input", wire::kMostPlanBytes));
  }
  return text;
}

Status Check(const PlanFlags& flags) {
  if (flags.files.empty() && flags.grow == 0 && !flags.make_room) {
    return Invalid("plan: want a file of pods, -f FILE, or --grow COUNT, or --make-room");
  }
  if (!flags.machine_types.empty() && flags.grow == 0) {
    return Invalid("plan: want --grow COUNT with --machine-type");
  }
  if (flags.add_nodes.size() != flags.like.size()) {
    return Invalid("plan: want one --like for each --add-nodes, got " +
                   std::to_string(flags.like.size()) + " and " +
                   std::to_string(flags.add_nodes.size()));
  }
  if (std::ranges::count(flags.files, "-") + std::ranges::count(flags.like, "-") > 1) {
    return Invalid("plan: want standard input (-) only once");
  }
  return {};
}

// Adds what --like says: the name of a node, or the Node that is in a file.
Status AddLike(const std::string& like, std::string& body) {
  if (!IsShapeFile(like)) {
    wire::AppendString(body, like);
    return {};
  }
  BERTH_TRY(const std::string text, TextIn(like));
  BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, like));
  if (documents.size() != 1) {
    return Invalid("--like " + like + ": want one Node, got " + std::to_string(documents.size()) +
                   " documents");
  }
  if (!documents.front().starts_with('{')) return Invalid("--like " + like + ": want a Node");
  body += documents.front();
  return {};
}

// Adds a list after other fields; nothing where it is empty.
void AddNames(const char* field, const std::vector<std::string>& names, std::string& body) {
  if (names.empty()) return;
  body += std::string(",\"") + field + "\":[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) body += ',';
    wire::AppendString(body, names[i]);
  }
  body += ']';
}

// The namespace of objects that name none: as kubectl would create them.
Result<std::string> NamespaceFor(const PlanFlags& flags) {
  if (!flags.namespace_name.empty()) return flags.namespace_name;
  const bool names_pods = !flags.files.empty() || !flags.room_for.empty();
  if (!flags.at.cluster || !flags.cluster.empty() || !names_pods) return "default";
  return CurrentNamespace(*flags.at.cluster);
}

// What room is to be made.
void AddRoom(const PlanFlags& flags, const std::string& space, std::string& body) {
  std::vector<std::string> names = flags.room_for;
  for (std::string& name : names) {
    if (name.find('/') == std::string::npos) name = space + "/" + name;
  }
  body += R"("make_room":{)";
  std::string fields;
  AddNames("for", names, fields);
  if (flags.most_moves > 0) fields += R"(,"most_moves":)" + std::to_string(flags.most_moves);
  if (flags.idle_nodes > 0) fields += R"(,"idle_nodes":)" + std::to_string(flags.idle_nodes);
  if (!flags.model.empty()) {
    fields += R"(,"model":)";
    wire::AppendString(fields, flags.model);
  }
  if (!fields.empty()) body += fields.substr(1);
  body += '}';
}

// The body of POST /plan.
Result<std::string> RequestOf(const PlanFlags& flags) {
  BERTH_TRY_STATUS(Check(flags));
  BERTH_TRY(const std::string space, NamespaceFor(flags));
  std::string body = "{";
  if (flags.grow > 0) body += R"("grow":)" + std::to_string(flags.grow);
  if (flags.make_room) AddRoom(flags, space, body);
  if (!flags.files.empty()) body += body.size() > 1 ? R"(,"pods":[)" : R"("pods":[)";
  bool is_first = true;
  for (const std::string& file : flags.files) {
    BERTH_TRY(const std::string text, TextIn(file));
    BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, file));
    for (const std::string& document : documents) {
      if (!std::exchange(is_first, false)) body += ',';
      body += document;
    }
  }
  if (!flags.files.empty()) body += ']';
  for (std::size_t i = 0; i < flags.like.size(); ++i) {
    body += i == 0 ? R"(,"add":[{"like":)" : R"(,{"like":)";
    BERTH_TRY_STATUS(AddLike(flags.like[i], body));
    body += R"(,"count":)" + std::to_string(flags.add_nodes[i]) + "}";
  }
  if (!flags.like.empty()) body += ']';
  AddNames("remove", flags.remove, body);
  AddNames("machine_types", flags.machine_types, body);
  if (space != "default") {  // a Berth of version 0.1.0 knows no other
    body += R"(,"namespace":)";
    wire::AppendString(body, space);
  }
  return body + "}";
}

// An error about a field of the request, in the words in which it was asked.
Error AsAsked(Error error, const PlanFlags& flags) {
  for (std::size_t i = 0; i < flags.machine_types.size(); ++i) {
    const std::string field = "machine_types[" + std::to_string(i) + "]";
    const std::size_t at = error.message.find(field);
    if (at != std::string::npos) error.message.replace(at, field.size(), "--machine-type");
  }
  for (std::size_t i = 0; i < flags.like.size(); ++i) {
    const std::string field = "add[" + std::to_string(i) + "].like";
    const std::size_t at = error.message.find(field);
    if (at == std::string::npos) continue;
    const bool goes_on = error.message.compare(at + field.size(), 1, ".") == 0;
    error.message.replace(at, field.size() + (goes_on ? 1 : 0),
                          "--like " + flags.like[i] + (goes_on ? ": " : ""));
  }
  return error;
}

Result<std::string> Ask(const PlanFlags& flags, const std::string& request) {
  if (flags.cluster.empty()) {
    return AskServer(flags.at, "POST", flags.json ? "/plan" : "/plan?text", request);
  }
  BERTH_TRY(const auto cluster, ClusterOfFile::Load(flags.cluster, flags.config));
  return MakePlan(cluster->live(), request, !flags.json);
}

}  // namespace

bool IsShapeFile(const std::string& like) {
  if (like == "-" || like.find('/') != std::string::npos) return true;
  for (const char* ending : {".yaml", ".yml", ".json"}) {
    if (like.ends_with(ending)) return true;
  }
  std::error_code ignored;  // what cannot be asked about is no file
  return std::filesystem::is_regular_file(like, ignored);
}

Result<std::string> PlanCommand(const PlanFlags& flags) {
  BERTH_TRY(const std::string request, RequestOf(flags));
  auto told = Ask(flags, request);
  if (!told) return tl::unexpected(AsAsked(std::move(told).error(), flags));
  return told;
}

}  // namespace berth
