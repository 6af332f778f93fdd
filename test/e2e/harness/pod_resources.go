// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// WatchDevices asks the kubelet of the machine again and again, until stop is closed, how many devices of GPUs it can
// give, and says for how long these were fewer than want in all. A kubelet that does not answer can give none.
func (m *Machine) WatchDevices(want int, stop <-chan struct{}) time.Duration {
	m.plane.T.Helper()
	connection, err := grpc.NewClient("unix://"+m.Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	if err != nil {
		m.plane.T.Fatalf("%v", err)
	}
	defer connection.Close()
	client := podresources.NewPodResourcesListerClient(connection)
	away, last := time.Duration(0), time.Now()
	for {
		select {
		case <-stop:
			return away
		case <-time.After(25 * time.Millisecond):
		}
		limit, cancel := context.WithTimeout(background(), time.Second)
		answer, err := client.GetAllocatableResources(limit, &podresources.AllocatableResourcesRequest{})
		cancel()
		number := 0
		for _, devices := range answer.GetDevices() {
			if devices.ResourceName == GPUResource {
				number += len(devices.DeviceIds)
			}
		}
		now := time.Now()
		if err != nil || number < want {
			away += now.Sub(last)
		}
		last = now
	}
}
