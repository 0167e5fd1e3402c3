package https

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/control"
)

// patience is how long a test waits for what has to happen.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a control that runs, in a directory of its own.
type house struct {
	*control.Control
	t         *testing.T
	dir, file string
	log       *records
	// address and policy are of the port of withPolicy.
	address, policy string
}

// newHouse returns a house that does not run yet, so that files can be put into
// its directory.
func newHouse(t *testing.T) *house {
	t.Helper()
	dir := t.TempDir()
	h := &house{t: t, dir: dir, file: filepath.Join(dir, "headgate.yaml"), log: &records{}}
	h.log.news = sync.NewCond(&h.log.mu)
	c, err := control.New(control.Options{
		Log:        slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		ConfigFile: h.file, StateDir: filepath.Join(dir, "state"), Ready: h.log.ready,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Control = c
	return h
}

// run runs the house with a configuration until the test ends. The error is that
// of the start.
func (h *house) run(text string) error {
	h.t.Helper()
	put(h.t, h.file, []byte(text))
	ctx, stop := context.WithCancel(context.Background())
	end := make(chan error, 1)
	go func() {
		end <- h.Run(ctx)
		h.log.ready()
	}()
	h.log.await(h.t, isReady)
	if h.Plan() == nil {
		stop()
		return <-end
	}
	h.t.Cleanup(func() {
		stop()
		if err := <-end; err != nil {
			h.t.Error(err)
		}
		if h.t.Failed() {
			h.t.Logf("the log of the house:\n%s", h.log.String())
		}
	})
	return nil
}

// start is run for a configuration that is good.
func (h *house) start(text string) {
	h.t.Helper()
	if err := h.run(text); err != nil {
		h.t.Fatal(err)
	}
}

// apply puts a good configuration into the file and applies it.
func (h *house) apply(text string) {
	h.t.Helper()
	put(h.t, h.file, []byte(text))
	if err := h.Reload(); err != nil {
		h.t.Fatal(err)
	}
}

// isReady is the word in a log of a house that runs, or has ended.
const isReady = "the house is ready"

// records is a log that can be waited for.
type records struct {
	mu   sync.Mutex
	news *sync.Cond
	text bytes.Buffer
}

func (r *records) ready() { r.Write([]byte(isReady + "\n")) }

func (r *records) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.news.Broadcast()
	return r.text.Write(p)
}

func (r *records) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// await waits until the log has a line with all the words.
func (r *records) await(t *testing.T, words ...string) {
	t.Helper()
	late := false
	timer := time.AfterFunc(3*patience, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		late = true
		r.news.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !hasLine(r.text.String(), words) {
		if late {
			t.Fatalf("no line with %q in the log:\n%s", words, r.text.String())
		}
		r.news.Wait()
	}
}

func hasLine(text string, words []string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return true
		}
	}
	return false
}
