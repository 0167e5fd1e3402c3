package control

import (
	"fmt"
	"testing"

	"headgate/internal/accesslog/recent"
)

// TestRecentRequestsOutliveChanges holds that what is kept stays until its settings
// change, and that it can be switched off and on.
func TestRecentRequestsOutliveChanges(t *testing.T) {
	const text = "version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false, recent: {enabled: %s}}\ndefaults: {%s}\n"
	c := prepare(t, fmt.Sprintf(text, "true", "")).run()
	first := c.c.Recent()
	if first == nil {
		t.Fatal("recent requests are not kept")
	}
	write(t, c.file, fmt.Sprintf(text, "true", "request_timeout: 3s"))
	if err := c.c.Reload(); err != nil {
		t.Fatal(err)
	}
	if c.c.Recent() != first {
		t.Error("a change of something else forgets recent requests")
	}
	ended := make(chan error)
	go func() {
		ended <- first.Follow(t.Context(), recent.Query{}, func(recent.Live) bool { return true })
	}()
	write(t, c.file, fmt.Sprintf(text, "false", ""))
	if err := c.c.Reload(); err != nil {
		t.Fatal(err)
	}
	if c.c.Recent() != nil {
		t.Error("recent requests are kept although that is off")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	write(t, c.file, fmt.Sprintf(text, "true, memory_limit: 2MiB", ""))
	if err := c.c.Reload(); err != nil {
		t.Fatal(err)
	}
	if c.c.Recent() == nil {
		t.Error("recent requests cannot be switched on again")
	}
	c.finish()
}
