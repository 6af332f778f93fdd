// SPDX-License-Identifier: Apache-2.0

// Work is what the containers of the tests run, and what keeps their pods' namespaces.
//
//	work                       waits for a signal
//	work SECONDS [EXIT CODE]   ends by itself
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	fmt.Println(os.Getenv("NVIDIA_VISIBLE_DEVICES"))
	if len(os.Args) < 2 {
		<-signals
		return
	}
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage: work [SECONDS [EXIT CODE]]")
		os.Exit(2)
	}
	select {
	case <-signals:
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	}
	if len(os.Args) > 2 {
		code, _ := strconv.Atoi(os.Args[2])
		os.Exit(code)
	}
}
