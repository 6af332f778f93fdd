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
	"sync/atomic"
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
	serving  atomic.Pointer[serving]
}

// serving is what lasts from one start of the server to the next.
type serving struct {
	stop      chan struct{}
	changes   chan struct{} // each wakes one reader, of those that wait the one that began first
	list      atomic.Pointer[[]*api.Device]
	forgotten map[string]bool // that were sick before: NVIDIA's plugin knows what it saw itself
}

func newPlugin(resource string, count int, dir string, o options) *plugin {
	vendor, name, _ := strings.Cut(resource, "/")
	name = strings.TrimSuffix(vendor, ".com") + "-" + name + ".sock" // nvidia-gpu.sock, as NVIDIA's
	return &plugin{options: o, resource: resource, count: count, socket: filepath.Join(dir, name)}
}

// restart serves on a new socket and registers it.
func (p *plugin) restart(registration string) error {
	if p.server != nil {
		close(p.serving.Load().stop)
		p.server.Stop()
	}
	_ = os.Remove(p.socket)
	now := &serving{stop: make(chan struct{}), changes: make(chan struct{}), forgotten: p.sickNow()}
	if p.server == nil {
		now.forgotten = nil
	}
	p.serving.Store(now)
	p.look(now, 0)
	go p.watch(now)
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

// sickNow is what the file of the sick ones has.
func (p *plugin) sickNow() map[string]bool {
	text, _ := os.ReadFile(p.sick)
	sick := map[string]bool{}
	for _, id := range strings.FieldsFunc(string(text), comma) {
		sick[strings.TrimSpace(id)] = true
	}
	return sick
}

func (p *plugin) devices(forgotten map[string]bool) []*api.Device {
	sick := p.sickNow()
	var all []*api.Device
	for index := range p.count {
		for replica := range p.replicas {
			device := &api.Device{ID: p.id(index), Health: api.Healthy}
			if sick[device.ID] && !forgotten[device.ID] {
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

// look renews the list, and says whether it has changed.
func (p *plugin) look(now *serving, turn int) bool {
	for id := range now.forgotten {
		if !p.sickNow()[id] { // it was well since then
			delete(now.forgotten, id)
		}
	}
	devices := p.lieAbout(p.devices(now.forgotten), turn)
	last := now.list.Swap(&devices)
	return last != nil && fmt.Sprint(*last) != fmt.Sprint(devices)
}

// watch looks again and again, and tells one reader of each change. It waits for a reader, as NVIDIA's plugin does.
func (p *plugin) watch(now *serving) {
	for turn := 1; ; turn++ {
		select {
		case <-now.stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		if !p.look(now, turn) {
			continue
		}
		select {
		case <-now.stop:
			return
		case now.changes <- struct{}{}:
		}
	}
}

// ListAndWatch sends the devices, and again when it hears of a change. As NVIDIA's plugin it does not look whether its
// caller has gone: the next change that it hears of is lost then.
func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	p.calls.add(call{Call: "ListAndWatch", Resource: p.resource})
	now := p.serving.Load()
	for {
		if err := stream.Send(&api.ListAndWatchResponse{Devices: *now.list.Load()}); err != nil {
			p.calls.add(call{Call: "ListAndWatch ended", Resource: p.resource})
			return err
		}
		select {
		case <-now.stop:
			return nil
		case <-now.changes:
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
