// SPDX-License-Identifier: Apache-2.0
//
// What the tests of the API client share: an API server with a certificate for 127.0.0.1, localhost
// and kubernetes, and the access to it.
#pragma once

#include <chrono>
#include <csignal>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "server/kube/client/http_api_client.h"
#include "test/support/stream_server.h"
#include "test/support/test_certificates.h"

namespace berth::test {

constexpr std::chrono::seconds kPatience(20);

// Answers every request with what it saw of it.
inline void Echo(const StreamRequest& request, StreamReply& reply) {
  reply.Whole(200, request.method + " " + request.target + "|" + request.body + "|" +
                       request.content_type + "|" + request.user_agent + "|" + request.token + "|" +
                       request.client);
}

class ApiClientTest : public testing::Test {
 protected:
  ApiClientTest() { std::signal(SIGPIPE, SIG_IGN); }

  void Serve(StreamServer::Handler handler) {
    server_ = std::make_unique<StreamServer>(StreamServerOptions{&identity_, &client_ca_},
                                             std::move(handler));
    access_.server = "https://127.0.0.1:" + std::to_string(server_->port());
    access_.ca_pem = CertificateText(ca_);
  }

  std::unique_ptr<kube::HttpApiClient> Client() const {
    auto client = kube::HttpApiClient::Create(access_);
    if (!client) throw std::runtime_error(client.error().message);
    return *std::move(client);
  }

  // The body of a GET, or what went wrong.
  std::string Get(kube::HttpApiClient& client) const {
    kube::ApiRequest request;
    request.path = "/x";
    const auto answer = client.Send(request);
    return answer ? std::to_string(answer->status) + " " + answer->body : answer.error().message;
  }
  std::string Get() const { return Get(*Client()); }

  std::string CreateError() const {
    const auto client = kube::HttpApiClient::Create(access_);
    return client ? "created" : client.error().message;
  }

  TemporaryFolder folder_;
  const Identity ca_ = MakeIdentity("test-ca");
  const Identity client_ca_ = MakeIdentity("client-ca");
  Identity identity_ = MakeIdentity("apiserver", &ca_, "IP:127.0.0.1,DNS:localhost,DNS:kubernetes");
  ClusterAccess access_;
  std::unique_ptr<StreamServer> server_;
};

}  // namespace berth::test
