// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// images has every image that it is asked for.
type images struct {
	cri.UnimplementedImageServiceServer
}

func image(spec *cri.ImageSpec) *cri.Image {
	name := spec.GetImage()
	return &cri.Image{Id: name, RepoTags: []string{name}, Size: 1, Username: "root", Spec: spec}
}

// ListImages lists none: the kubelet has none to remove.
func (images) ListImages(context.Context, *cri.ListImagesRequest) (*cri.ListImagesResponse, error) {
	return &cri.ListImagesResponse{}, nil
}

func (images) ImageStatus(_ context.Context, request *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	return &cri.ImageStatusResponse{Image: image(request.Image)}, nil
}

func (images) PullImage(_ context.Context, request *cri.PullImageRequest) (*cri.PullImageResponse, error) {
	return &cri.PullImageResponse{ImageRef: request.Image.GetImage()}, nil
}

func (images) RemoveImage(context.Context, *cri.RemoveImageRequest) (*cri.RemoveImageResponse, error) {
	return &cri.RemoveImageResponse{}, nil
}

func (images) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	used := []*cri.FilesystemUsage{{Timestamp: time.Now().UnixNano(), FsId: &cri.FilesystemIdentifier{Mountpoint: "/"},
		UsedBytes: &cri.UInt64Value{}, InodesUsed: &cri.UInt64Value{}}}
	return &cri.ImageFsInfoResponse{ImageFilesystems: used, ContainerFilesystems: used}, nil
}
