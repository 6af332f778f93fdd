// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pretended is the runtime. Its calls do what the protocol says of them, and nothing to the machine.
type pretended struct {
	cri.UnimplementedRuntimeServiceServer

	mutex      sync.Mutex
	last       int
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

type sandbox struct {
	cri.PodSandbox
	hostNetwork bool
}

type container struct {
	cri.ContainerStatus
	sandbox string
	args    []string
	ends    *time.Timer
}

func newRuntime() *pretended {
	return &pretended{sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
}

func now() int64 { return time.Now().UnixNano() }

func gone(kind, id string) error { return status.Errorf(codes.NotFound, "no %s %q", kind, id) }

// id is one that was not given before. Requires the mutex.
func (r *pretended) id() string {
	r.last++
	return fmt.Sprintf("%064x", r.last)
}

func (r *pretended) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "fakecri", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

func (r *pretended) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true}}}}, nil
}

func (r *pretended) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{Linux: &cri.LinuxRuntimeConfiguration{CgroupDriver: cri.CgroupDriver_CGROUPFS}}, nil
}

func (r *pretended) UpdateRuntimeConfig(context.Context, *cri.UpdateRuntimeConfigRequest) (*cri.UpdateRuntimeConfigResponse, error) {
	return &cri.UpdateRuntimeConfigResponse{}, nil
}

func (r *pretended) RunPodSandbox(_ context.Context, request *cri.RunPodSandboxRequest) (*cri.RunPodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	config := request.Config
	made := &sandbox{}
	made.Id, made.Metadata, made.CreatedAt = r.id(), config.Metadata, now()
	made.Labels, made.Annotations, made.RuntimeHandler = config.Labels, config.Annotations, request.RuntimeHandler
	made.hostNetwork = config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == cri.NamespaceMode_NODE
	r.sandboxes[made.Id] = made
	return &cri.RunPodSandboxResponse{PodSandboxId: made.Id}, nil
}

func (r *pretended) StopPodSandbox(_ context.Context, request *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, c := range r.containers {
		if c.sandbox == request.PodSandboxId {
			c.end(137)
		}
	}
	if s := r.sandboxes[request.PodSandboxId]; s != nil {
		s.State = cri.PodSandboxState_SANDBOX_NOTREADY
	}
	return &cri.StopPodSandboxResponse{}, nil
}

func (r *pretended) RemovePodSandbox(_ context.Context, request *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for id, c := range r.containers {
		if c.sandbox == request.PodSandboxId {
			c.end(137)
			delete(r.containers, id)
		}
	}
	delete(r.sandboxes, request.PodSandboxId)
	return &cri.RemovePodSandboxResponse{}, nil
}

func (r *pretended) PodSandboxStatus(_ context.Context, request *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s := r.sandboxes[request.PodSandboxId]
	if s == nil {
		return nil, gone("sandbox", request.PodSandboxId)
	}
	network, ip := cri.NamespaceMode_POD, "10.0.0.1"
	if s.hostNetwork {
		network, ip = cri.NamespaceMode_NODE, ""
	}
	return &cri.PodSandboxStatusResponse{Status: &cri.PodSandboxStatus{Id: s.Id, Metadata: s.Metadata, State: s.State,
		CreatedAt: s.CreatedAt, Labels: s.Labels, Annotations: s.Annotations, RuntimeHandler: s.RuntimeHandler,
		Network: &cri.PodSandboxNetworkStatus{Ip: ip},
		Linux:   &cri.LinuxPodSandboxStatus{Namespaces: &cri.Namespace{Options: &cri.NamespaceOption{Network: network}}}}}, nil
}

func (r *pretended) ListPodSandbox(_ context.Context, request *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	response := &cri.ListPodSandboxResponse{}
	filter := request.GetFilter()
	for _, s := range r.sandboxes {
		if (filter.GetId() == "" || filter.Id == s.Id) && has(s.Labels, filter.GetLabelSelector()) &&
			(filter.GetState() == nil || filter.State.State == s.State) {
			response.Items = append(response.Items, proto.CloneOf(&s.PodSandbox))
		}
	}
	return response, nil
}

func has(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func (r *pretended) CreateContainer(_ context.Context, request *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s := r.sandboxes[request.PodSandboxId]
	if s == nil {
		return nil, gone("sandbox", request.PodSandboxId)
	}
	config := request.Config
	made := &container{sandbox: s.Id, args: config.Args}
	made.Id, made.Metadata, made.CreatedAt, made.State = r.id(), config.Metadata, now(), cri.ContainerState_CONTAINER_CREATED
	made.Image, made.ImageRef, made.ImageId = config.Image, config.Image.GetImage(), config.Image.GetImage()
	made.Labels, made.Annotations = config.Labels, config.Annotations
	if config.LogPath != "" {
		made.LogPath = request.SandboxConfig.GetLogDirectory() + "/" + config.LogPath
	}
	r.containers[made.Id] = made
	return &cri.CreateContainerResponse{ContainerId: made.Id}, nil
}

func (r *pretended) StartContainer(_ context.Context, request *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	c := r.containers[request.ContainerId]
	if c == nil {
		return nil, gone("container", request.ContainerId)
	}
	c.State, c.StartedAt = cri.ContainerState_CONTAINER_RUNNING, now()
	if len(c.args) == 0 {
		return &cri.StartContainerResponse{}, nil
	}
	seconds, err := strconv.ParseFloat(c.args[0], 64)
	code := 0
	if err != nil {
		seconds, code = 0, 2
	} else if len(c.args) > 1 {
		code, _ = strconv.Atoi(c.args[1])
	}
	c.ends = time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		c.end(int32(code))
	})
	return &cri.StartContainerResponse{}, nil
}

// end ends the container, if it has not ended. Requires the mutex.
func (c *container) end(code int32) {
	if c.ends != nil {
		c.ends.Stop()
	}
	if c.State == cri.ContainerState_CONTAINER_EXITED {
		return
	}
	c.State, c.FinishedAt, c.ExitCode, c.Reason = cri.ContainerState_CONTAINER_EXITED, now(), code, "Completed"
	if code != 0 {
		c.Reason = "Error"
	}
}

func (r *pretended) StopContainer(_ context.Context, request *cri.StopContainerRequest) (*cri.StopContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if c := r.containers[request.ContainerId]; c != nil {
		c.end(0)
	}
	return &cri.StopContainerResponse{}, nil
}

func (r *pretended) RemoveContainer(_ context.Context, request *cri.RemoveContainerRequest) (*cri.RemoveContainerResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if c := r.containers[request.ContainerId]; c != nil {
		c.end(137)
		delete(r.containers, request.ContainerId)
	}
	return &cri.RemoveContainerResponse{}, nil
}

func (r *pretended) ListContainers(_ context.Context, request *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	response := &cri.ListContainersResponse{}
	filter := request.GetFilter()
	for _, c := range r.containers {
		if (filter.GetId() == "" || filter.Id == c.Id) && (filter.GetPodSandboxId() == "" || filter.PodSandboxId == c.sandbox) &&
			(filter.GetState() == nil || filter.State.State == c.State) && has(c.Labels, filter.GetLabelSelector()) {
			response.Containers = append(response.Containers, &cri.Container{Id: c.Id, PodSandboxId: c.sandbox, Metadata: c.Metadata,
				Image: c.Image, ImageRef: c.ImageRef, ImageId: c.ImageId, State: c.State, CreatedAt: c.CreatedAt, Labels: c.Labels,
				Annotations: c.Annotations})
		}
	}
	return response, nil
}

func (r *pretended) ContainerStatus(_ context.Context, request *cri.ContainerStatusRequest) (*cri.ContainerStatusResponse, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	c := r.containers[request.ContainerId]
	if c == nil {
		return nil, gone("container", request.ContainerId)
	}
	return &cri.ContainerStatusResponse{Status: proto.CloneOf(&c.ContainerStatus)}, nil
}

func (r *pretended) UpdateContainerResources(context.Context, *cri.UpdateContainerResourcesRequest) (*cri.UpdateContainerResourcesResponse, error) {
	return &cri.UpdateContainerResourcesResponse{}, nil
}

func (r *pretended) ReopenContainerLog(context.Context, *cri.ReopenContainerLogRequest) (*cri.ReopenContainerLogResponse, error) {
	return &cri.ReopenContainerLogResponse{}, nil
}

func (r *pretended) ListContainerStats(context.Context, *cri.ListContainerStatsRequest) (*cri.ListContainerStatsResponse, error) {
	return &cri.ListContainerStatsResponse{}, nil
}

func (r *pretended) ListPodSandboxStats(context.Context, *cri.ListPodSandboxStatsRequest) (*cri.ListPodSandboxStatsResponse, error) {
	return &cri.ListPodSandboxStatsResponse{}, nil
}
