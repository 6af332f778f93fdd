// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// call is a line of the log of calls.
type call struct {
	At        time.Time `json:"at"`
	Call      string    `json:"call"`
	Resource  string    `json:"resource"`
	Available []string  `json:"available,omitempty"`
	Must      []string  `json:"must,omitempty"`
	Size      int32     `json:"size,omitempty"`
	IDs       []string  `json:"ids,omitempty"`
	Error     error     `json:"-"`
	Failed    string    `json:"failed,omitempty"`
}

type callLog struct {
	mutex sync.Mutex
	file  *os.File
}

// newCallLog appends to file; to none where its name is empty.
func newCallLog(name string) *callLog {
	if name == "" {
		return &callLog{}
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakegpu:", err)
		os.Exit(1)
	}
	return &callLog{file: file}
}

func (l *callLog) add(c call) {
	if l.file == nil {
		return
	}
	c.At = time.Now()
	if c.Error != nil {
		c.Failed = c.Error.Error()
	}
	line, _ := json.Marshal(c)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	_, _ = l.file.Write(append(line, '\n'))
}
