// SPDX-License-Identifier: Apache-2.0
//
// What an answer of an extender has to be, whatever its cluster is.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/replay/conform/connection.h"

namespace berth::conform {

enum class Outcome { kPass, kFail, kSkip };

struct Verdict {
  Outcome outcome = Outcome::kPass;
  std::string text;  // what is wrong, or why it is skipped
};

// What was asked: the part that the answer has to agree with.
struct Question {
  char verb = 'f';                              // f filter, p prioritize, v preempt, b bind
  std::map<std::string, int> nodes;             // and how often each was sent
  std::map<std::string, nlohmann::json> items;  // full nodes by name
  bool by_names = false;                        // NodeNames was set
  std::map<std::string, std::set<std::string>> victims;  // UIDs by node
};

// Keys count in any case, as Go reads them. A body that is no JSON asks for nothing.
Question QuestionOf(char verb, const std::string& body);

// What is wanted of an answer: in words, and for other verbs than filter where these differ.
struct Want {
  Verdict (*check)(const Question&, const HttpAnswer&);
  const char* words;
  const char* prioritize = nullptr;
  const char* preempt = nullptr;
};
const char* WordsOf(const Want& want, char verb);

extern const Want kRefused;     // an error that kube-scheduler sees as one
extern const Want kAnswered;    // what the verb answers to an ordinary request
extern const Want kEither;      // one of both
extern const Want kPassedOn;    // answered; all nodes pass
extern const Want kUnchanged;   // answered; full nodes come back as they were sent
extern const Want kNoNodes;     // filter: empty lists without an Error; prioritize: []
extern const Want kNoVictims;   // preempt: no node
extern const Want kNotFound;    // 404
extern const Want kNotAllowed;  // 405 with Allow
extern const Want kClosed;      // refused or answered, and the connection is closed
extern const Want kReadable;    // answered, in a coding that the client named

}  // namespace berth::conform
