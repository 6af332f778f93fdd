// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// lieAbout is what ListAndWatch says instead of the truth in its turn-th look:
//
//	vanish     the last device is there every other second
//	duplicate  every device is listed twice
//	many       10,000 more devices, which no Allocate takes
//	hang       nothing at all after the first list (and no call is answered)
//	error      the truth (every call fails)
func (p *plugin) lieAbout(devices []*api.Device, turn int) []*api.Device {
	switch p.lie {
	case "vanish":
		if turn/10%2 == 1 {
			return devices[:len(devices)-1]
		}
	case "duplicate":
		return append(devices, devices...)
	case "many":
		for i := range 10000 {
			devices = append(devices, &api.Device{ID: fmt.Sprintf("GPU-nobody-%d", i), Health: api.Unhealthy})
		}
	}
	return devices
}

// lieInCall fails a call, or answers it never.
func (p *plugin) lieInCall(ctx context.Context) error {
	switch p.lie {
	case "hang":
		<-ctx.Done()
		return ctx.Err()
	case "error":
		return errors.New("as it was told to")
	}
	return nil
}
