// SPDX-License-Identifier: Apache-2.0
#include "config/model_constants.h"

#include <utility>

#include "config/describe.h"

namespace berth {
namespace {

// The visitor of Describe that resets constants; they are not in lists.
class ConstantReset {
 public:
  ConstantReset(std::vector<std::string>& paths, std::string place)
      : paths_(paths), place_(std::move(place)) {}

  template <class T, class Form>
  void Field(const char*, T&, Form, const char*) {}
  template <class T, class Form>
  void Field(const char* key, T& value, Constant<Form, T> constant, const char*) {
    if (std::exchange(value, constant.fixed) != constant.fixed) paths_.push_back(place_ + key);
  }
  template <class T>
  void Group(const char* key, T& settings, const char*) {
    ConstantReset inner(paths_, place_ + key + ".");
    Describe(inner, settings);
  }
  template <class T>
  void List(const char*, T&, const char*) {}

 private:
  std::vector<std::string>& paths_;
  const std::string place_;
};

}  // namespace

std::vector<std::string> ResetModelConstants(Config& config) {
  std::vector<std::string> paths;
  ConstantReset reset(paths, "");
  Describe(reset, config);
  return paths;
}

}  // namespace berth
