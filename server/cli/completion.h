// SPDX-License-Identifier: Apache-2.0
//
// Completion of a command line in bash, zsh, fish and kubectl. Each shell's script asks the program
// itself, which knows every command and option.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

// The hidden command that the scripts call.
inline constexpr std::string_view kCompleteCommand = "__complete";

// What may follow. words: those after the program's name; the last one may be incomplete. Lines
// "WORD\tWHAT IT IS", then ":4", or ":0" where files may follow as well: what kubectl expects of
// kubectl_complete-NAME (k8s.io/kubectl, plugin_completion.go), and cobra prints.
std::string Complete(const CLI::App& app, std::span<const std::string> words);

// The script for "bash", "zsh" or "fish". Error: kInvalidArgument for another shell.
Result<std::string> CompletionScript(std::string_view shell, const std::string& program);

}  // namespace berth
