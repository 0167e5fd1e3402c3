// Package update finds out whether a newer release of headgate exists. It asks only when
// an operator wants it to: by "headgate version --check", or once a day while
// admin.update_check is set. It sends nothing but the version of the client.
package update

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/semver"

	"headgate/internal/clock"
	"headgate/internal/server/download"
)

// ErrNoSource is the error where a build does not know where releases are published.
var ErrNoSource = errors.New("this build does not know where releases are published: it was not made by make release")

// Source returns the URL of the file with the version of the latest release, below the
// home page of the project; "" without one.
func Source(homepage string) string {
	if homepage == "" {
		return ""
	}
	return strings.TrimSuffix(homepage, "/") + "/releases/latest/download/VERSION"
}

// maxFile is how large that file may be.
const maxFile = 1 << 10

// Client asks for the latest release.
type Client struct {
	url      string
	download *download.Client
}

// NewClient returns a client that asks at a URL, see Source, and introduces itself as
// agent. Roots are the authorities to trust, nil for those of the system.
func NewClient(url, agent string, roots *x509.CertPool) *Client {
	return &Client{url, download.New(agent, roots)}
}

// Close closes idle connections.
func (c *Client) Close() { c.download.Close() }

// Latest returns the version of the latest release, such as 1.2.3.
func (c *Client) Latest(ctx context.Context) (string, error) {
	if c.url == "" {
		return "", ErrNoSource
	}
	text, _, err := c.download.Get(ctx, c.url, download.Version{}, maxFile)
	if err != nil {
		return "", fmt.Errorf("the latest release cannot be read from %s: %w", c.url, err)
	}
	version := string(bytes.TrimSpace(text))
	if !semver.IsValid("v"+version) || semver.Canonical("v"+version) != "v"+version {
		return "", fmt.Errorf("the latest release cannot be read from %s: it has no version such as 1.2.3", c.url)
	}
	return version, nil
}

// Newer reports whether a version is newer than the one of this build. A build without a
// version of a release is older than none.
func Newer(latest, have string) bool {
	return semver.IsValid("v"+have) && semver.Compare("v"+latest, "v"+have) > 0
}

// Every is how often a Watch asks. It waits a random part of an hour before it asks first,
// so that many machines that start together do not ask together.
const Every = 24 * time.Hour

// Watch asks for the latest release once a day while it is switched on. Its methods may be
// called by several goroutines at once, but Use by one at a time.
type Watch struct {
	client *Client
	have   string
	log    *slog.Logger
	newer  atomic.Pointer[string]
	stop   context.CancelFunc // nil while it is off
	ended  sync.WaitGroup

	first func() time.Duration
}

// NewWatch returns a watch that is off. Have is the version of this build.
func NewWatch(client *Client, have string, log *slog.Logger) *Watch {
	return &Watch{client: client, have: have, log: log, first: func() time.Duration { return rand.N(time.Hour) }}
}

// Use switches the watch on or off.
func (w *Watch) Use(on bool) {
	switch {
	case on && w.stop == nil:
		var ctx context.Context
		ctx, w.stop = context.WithCancel(context.Background())
		w.ended.Go(func() { w.follow(ctx) })
	case !on && w.stop != nil:
		w.Close()
		w.stop = nil
		w.newer.Store(nil)
	}
}

// Close ends it, and waits.
func (w *Watch) Close() {
	if w.stop != nil {
		w.stop()
		w.ended.Wait()
	}
	w.client.Close()
}

// Newer returns the version of a newer release, "" if none is known.
func (w *Watch) Newer() string {
	if v := w.newer.Load(); v != nil {
		return *v
	}
	return ""
}

func (w *Watch) follow(ctx context.Context) {
	for pause := w.first(); clock.Sleep(ctx, pause); pause = Every {
		latest, err := w.client.Latest(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			w.log.Warn("update check failed", "error", err, "next", Every)
		case !Newer(latest, w.have):
			w.newer.Store(nil)
		case w.Newer() != latest:
			w.log.Info("a newer release of headgate exists", "version", latest, "this", w.have)
			w.newer.Store(&latest)
		}
	}
}
