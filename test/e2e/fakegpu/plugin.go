// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// options are those of the command line that all resources share.
type options struct {
	node     string
	replicas int
	numa     []string
	prefer   string
	links    [][]int
	sick     string
	lie      string
	calls    *callLog
}

// plugin serves one resource.
type plugin struct {
	api.UnimplementedDevicePluginServer
	options
	resource string
	count    int
	socket   string
	server   *grpc.Server
}

func newPlugin(resource string, count int, dir string, o options) *plugin {
	vendor, name, _ := strings.Cut(resource, "/")
	name = strings.TrimSuffix(vendor, ".com") + "-" + name + ".sock" // nvidia-gpu.sock, as NVIDIA's
	return &plugin{options: o, resource: resource, count: count, socket: filepath.Join(dir, name)}
}

// restart serves on a new socket and registers it.
func (p *plugin) restart(registration string) error {
	if p.server != nil {
		p.server.Stop()
	}
	_ = os.Remove(p.socket)
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		return err
	}
	p.server = grpc.NewServer()
	api.RegisterDevicePluginServer(p.server, p)
	go func(server *grpc.Server) { _ = server.Serve(listener) }(p.server)
	connection, err := grpc.NewClient("unix://"+registration, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limit, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err = api.NewRegistrationClient(connection).Register(limit, &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(p.socket), ResourceName: p.resource, Options: p.pluginOptions()})
	p.calls.add(call{Call: "Register", Resource: p.resource, Error: err})
	return err
}

func (p *plugin) pluginOptions() *api.DevicePluginOptions {
	return &api.DevicePluginOptions{GetPreferredAllocationAvailable: p.prefer != "none"}
}

func (p *plugin) id(index int) string {
	_, profile, isMIG := strings.Cut(p.resource, "/mig-")
	if isMIG {
		return fmt.Sprintf("MIG-%s-%s-%d", p.node, profile, index)
	}
	return fmt.Sprintf("GPU-%s-%d", p.node, index)
}

// index is that of the device with this ID, of a replica too; -1 where it is not ours.
func (p *plugin) index(id string) int {
	device, _, _ := strings.Cut(id, "::")
	index, err := strconv.Atoi(device[strings.LastIndexByte(device, '-')+1:])
	if err != nil || index >= p.count || p.id(index) != device {
		return -1
	}
	return index
}

func (p *plugin) devices() []*api.Device {
	text, _ := os.ReadFile(p.sick)
	sick := map[string]bool{}
	for _, id := range strings.FieldsFunc(string(text), comma) {
		sick[strings.TrimSpace(id)] = true
	}
	var all []*api.Device
	for index := range p.count {
		for replica := range p.replicas {
			device := &api.Device{ID: p.id(index), Health: api.Healthy}
			if sick[device.ID] {
				device.Health = api.Unhealthy
			}
			if p.replicas > 1 {
				device.ID += fmt.Sprintf("::%d", replica)
			}
			if index < len(p.numa) {
				numa, _ := strconv.ParseInt(p.numa[index], 10, 64)
				device.Topology = &api.TopologyInfo{Nodes: []*api.NUMANode{{ID: numa}}}
			}
			all = append(all, device)
		}
	}
	return all
}

// GetDevicePluginOptions says whether the plugin has preferences.
func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	p.calls.add(call{Call: "GetDevicePluginOptions", Resource: p.resource})
	return p.pluginOptions(), nil
}

// ListAndWatch sends the devices, and again when the file of the sick ones has changed.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	p.calls.add(call{Call: "ListAndWatch", Resource: p.resource})
	last := ""
	for turn := 0; ; turn++ {
		devices := p.lieAbout(p.devices(), turn)
		if text := fmt.Sprint(devices); text != last {
			last = text
			if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			p.calls.add(call{Call: "ListAndWatch ended", Resource: p.resource})
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// GetPreferredAllocation answers by -prefer.
func (p *plugin) GetPreferredAllocation(ctx context.Context, request *api.PreferredAllocationRequest) (
	*api.PreferredAllocationResponse, error) {
	if err := p.lieInCall(ctx); err != nil {
		return nil, err
	}
	response := &api.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		ids := p.choose(container)
		p.calls.add(call{Call: "GetPreferredAllocation", Resource: p.resource, Available: container.AvailableDeviceIDs,
			Must: container.MustIncludeDeviceIDs, Size: container.AllocationSize, IDs: ids})
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return response, nil
}

// Allocate says the devices to the container, as NVIDIA's plugin does without CDI.
func (p *plugin) Allocate(ctx context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	if err := p.lieInCall(ctx); err != nil {
		return nil, err
	}
	response := &api.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		p.calls.add(call{Call: "Allocate", Resource: p.resource, IDs: container.DevicesIds})
		for _, id := range container.DevicesIds {
			if p.index(id) < 0 {
				return nil, fmt.Errorf("no device %q of %s", id, p.resource)
			}
		}
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")}})
	}
	return response, nil
}

// PreStartContainer does nothing; the plugin does not ask for it.
func (p *plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}
