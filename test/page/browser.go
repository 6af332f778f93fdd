// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Tab is a tab of a browser without a window, which asks nobody but 127.0.0.1.
type Tab struct {
	ctx    context.Context
	cancel []context.CancelFunc
	mu     sync.Mutex
	faults []string
}

// NoBrowser says why there is none; empty when there is one.
func NoBrowser() string {
	if _, err := exec.LookPath("chromium"); err != nil {
		return "no chromium: apt-get install chromium"
	}
	return ""
}

// OpenTab starts a browser.
func OpenTab(width, height int) (*Tab, error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(width, height),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	tab := &Tab{}
	parent, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(parent)
	tab.ctx, tab.cancel = ctx, []context.CancelFunc{end, stop}
	if err := tab.do(chromedp.Navigate("about:blank")); err != nil {
		tab.Close()
		return nil, err
	}
	err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			tab.fault(event.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning {
				tab.fault(fmt.Sprint("console: ", event.Args))
			}
		case *log.EventEntryAdded:
			if event.Entry.Level == log.EntryLevelError {
				tab.fault(event.Entry.Text + " " + event.Entry.URL)
			}
		}
	})
	if err != nil {
		tab.Close()
		return nil, err
	}
	return tab, nil
}

func (t *Tab) fault(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, text)
}

// Faults are the errors on its console so far.
func (t *Tab) Faults() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.faults...)
}

// Close ends the browser.
func (t *Tab) Close() {
	for _, cancel := range t.cancel {
		cancel()
	}
}

func (t *Tab) do(action chromedp.Action[chromedp.Void]) error {
	_, err := chromedp.Run(t.ctx, action)
	return err
}

// Go opens an address.
func (t *Tab) Go(url string) error { return t.do(chromedp.Navigate(url)) }

// Eval is the value of an expression, which may be a promise.
func Eval[T any](t *Tab, expression string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Await asks until the expression holds.
func (t *Tab) Await(expression string) error {
	var last error
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(50 * time.Millisecond) {
		var holds bool
		if holds, last = Eval[bool](t, "Boolean("+expression+")"); holds {
			return nil
		}
	}
	return fmt.Errorf("does not come true: %s (%v)", expression, last)
}

// Size is that of the window; a phone has small ones, and touches.
func (t *Tab) Size(width, height int64, phone bool) error {
	options := []chromedp.EmulateViewportOption{}
	if phone {
		options = append(options, chromedp.EmulateScale(2), chromedp.EmulateMobile, chromedp.EmulateTouch)
	}
	return t.do(chromedp.EmulateViewport(width, height, options...))
}

// Prefer sets prefers-color-scheme.
func (t *Tab) Prefer(scheme string) error {
	_, err := chromedp.Run(t.ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return chromedp.Void{}, err
	})
	return err
}

// Press sends keys to whatever has the focus.
func (t *Tab) Press(keys string) error { return t.do(chromedp.KeyEvent(keys)) }

// Picture writes a PNG of what the window shows, or of the whole page.
func (t *Tab) Picture(file string, whole bool) error {
	take := chromedp.CaptureScreenshot()
	if whole {
		take = chromedp.FullScreenshot(100)
	}
	bytes, err := chromedp.Run(t.ctx, take)
	if err != nil {
		return err
	}
	return os.WriteFile(file, bytes, 0o644)
}

// Spoken are the elements of that role as a screen reader has them: their names.
func (t *Tab) Spoken(role string) ([]string, error) {
	return chromedp.Run(t.ctx, func(ctx context.Context, target *chromedp.Target) ([]string, error) {
		tree, err := cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		if err != nil {
			return nil, err
		}
		var names []string
		for _, node := range tree.Nodes {
			if node.Ignored || node.Role == nil || string(node.Role.Value) != fmt.Sprintf("%q", role) || node.Name == nil {
				continue
			}
			var name string
			if err := json.Unmarshal(node.Name.Value, &name); err != nil {
				return nil, err
			}
			names = append(names, name)
		}
		return names, nil
	})
}

// Print is the page on paper, as PDF.
func (t *Tab) Print() ([]byte, error) {
	return chromedp.Run(t.ctx, func(ctx context.Context, target *chromedp.Target) ([]byte, error) {
		printed, err := cdp.Call(ctx, target, page.PrintToPDF, page.PrintToPDFParams{})
		return printed.Data, err
	})
}

// Small writes what the window shows as a small WebP.
func (t *Tab) Small(file string) error {
	_, err := chromedp.Run(t.ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		quality := int64(80)
		shot, err := cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
		if err == nil {
			err = os.WriteFile(file, shot.Data, 0o644)
		}
		return chromedp.Void{}, err
	})
	return err
}

// Text of an element.
func (t *Tab) Text(selector string) string {
	text, err := Eval[string](t, fmt.Sprintf("document.querySelector(%q)?.innerText ?? '(none)'", selector))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(text)
}

// TaskSeconds is how long the page's thread has worked so far.
func (t *Tab) TaskSeconds() (float64, error) {
	return chromedp.Run(t.ctx, func(ctx context.Context, target *chromedp.Target) (float64, error) {
		if _, err := cdp.Call(ctx, target, performance.Enable, performance.EnableParams{}); err != nil {
			return 0, err
		}
		answer, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return 0, err
		}
		for _, metric := range answer.Metrics {
			if metric.Name == "TaskDuration" {
				return metric.Value, nil
			}
		}
		return 0, fmt.Errorf("the browser does not measure tasks")
	})
}
