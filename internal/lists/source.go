package lists

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"time"

	"headgate/internal/file"
	"headgate/internal/server/download"
	"headgate/internal/setting/ipset"
)

// location returns where the entries come from, as it is shown.
func (c *Config) location() string {
	switch {
	case c.URL != "":
		return download.Shown(c.URL)
	case c.File != "":
		return c.File
	case c.CrowdSec != nil:
		return download.Shown(c.CrowdSec.URL)
	}
	return ""
}

// load loads what is at hand: entries, the file, or what was kept of the last run. It
// sends nothing.
func (l *List) load() {
	switch c := l.settings; {
	case c.File != "":
		l.readFile()
	case c.URL != "" || c.CrowdSec != nil:
		l.readKept()
	default:
		l.readEntries()
	}
}

// runner returns what keeps the list up to date, nil for one that does not change.
func (l *List) runner() func(context.Context) {
	switch c := l.settings; {
	case c.File != "":
		return l.followFile
	case c.URL != "":
		return l.followURL
	case c.CrowdSec != nil:
		return l.followCrowdSec
	}
	if _, names, _ := split(l.settings.Entries); len(names) > 0 {
		return l.followNames
	}
	return nil
}

// filePause is how often a file is looked at.
const filePause = 5 * time.Second

func (l *List) path() string {
	if filepath.IsAbs(l.settings.File) {
		return l.settings.File
	}
	return filepath.Join(l.dir, l.settings.File)
}

// readFile takes the entries of the file.
func (l *List) readFile() {
	l.stamp = file.StampOf(l.path()) // before, so that a change meanwhile is found
	data, err := file.Read(l.path(), maxBytes, fmt.Sprintf("more than %d MiB", maxBytes>>20))
	if err != nil {
		l.fail(Issue{"list_unavailable", err.Error(), "make the file readable for headgate"})
		return
	}
	p, err := parse(data)
	if err != nil {
		l.fail(Issue{"list_unavailable", "read " + l.settings.File + ": " + err.Error(), "write an address or network a line"})
		return
	}
	l.put(ipset.Of(p.networks), p.issues())
}

// issues returns what an operator should know of lines that are no entries.
func (p *parsed) issues() []Issue {
	if p.wrong == 0 {
		return nil
	}
	return []Issue{{"entries_invalid", fmt.Sprintf("%s neither an address nor a network, the first is %q", count(p.wrong, "line is", "lines are"), p.firstWrong), "correct them, or put # in front"}}
}

// followFile reads the file again when it has changed.
func (l *List) followFile(ctx context.Context) {
	for sleep(ctx, l.o.filePause) {
		if file.StampOf(l.path()) != l.stamp {
			l.readFile()
		}
	}
}

// The times of downloads.
const (
	// spread is over how long the first downloads after a start are spread.
	spread = 30 * time.Second
	// again is after how long a download that failed is tried again; the pause doubles.
	again = time.Minute
)

// followURL downloads the list again and again.
func (l *List) followURL(ctx context.Context) {
	client := download.New(l.o.Agent, l.o.Roots)
	defer client.Close()
	interval := l.settings.Interval.D()
	var version download.Version
	pause, failed := l.due(interval), 0
	for {
		l.planned(pause)
		if !sleep(ctx, pause) {
			return
		}
		data, now, err := client.Get(ctx, l.settings.URL, version, maxBytes)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, download.ErrUnchanged):
			l.unchanged()
		case err == nil:
			err = l.take(data)
		}
		if err == nil || errors.Is(err, download.ErrUnchanged) {
			version, failed = now, 0
			pause = interval - interval/20 + rand.N(interval/10+1)
		} else {
			l.failed(err)
			pause = min(again<<min(failed, 10), interval)
			failed++
		}
		l.asked(l.o.Clock().Add(pause))
	}
}

// due returns when the list is downloaded first: at once where there is nothing to use.
func (l *List) due(interval time.Duration) time.Duration {
	l.mu.Lock()
	loaded := l.mu.state.Loaded
	l.mu.Unlock()
	if loaded.IsZero() {
		return 0
	}
	return max(interval-l.o.Clock().Sub(loaded), 0) + rand.N(spread)
}

func (l *List) planned(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.state.Next = l.o.Clock().Add(pause)
}

// errShrunk refuses a list that has lost most of its entries.
var errShrunk = errors.New("the list shrank")

// take makes a downloaded text the list, or says why it cannot be.
func (l *List) take(data []byte) error {
	p, err := parse(data)
	if err != nil {
		return err
	}
	kept, left := screen(p.networks, l.o.protected)
	set := ipset.Of(kept)
	if before := l.size(); before >= 10 && set.Len() <= before/10 && !l.settings.AllowShrink {
		return fmt.Errorf("%w from %d to %s", errShrunk, before, count(set.Len(), "entry", "entries"))
	}
	l.put(set, append(p.issues(), left.issues()...))
	if err := l.keep(p.networks); err != nil {
		l.log.Warn("list cannot be saved for the next start", "error", err)
	}
	return nil
}

// failed notes why a download failed.
func (l *List) failed(err error) {
	issue := Issue{"list_unavailable", "download: " + err.Error(), "open the URL in a browser; the last entries are used until it can be downloaded"}
	if errors.Is(err, errShrunk) {
		issue = Issue{"list_shrunk", err.Error() + "; the entries before are used", "set allow_shrink: true if that is right"}
	}
	if errors.Is(err, fs.ErrPermission) {
		issue.Hint = ""
	}
	l.fail(issue)
}

// unchanged notes that the server still has the list that is used.
func (l *List) unchanged() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Clock()
	if l.mu.state.Loaded = now; l.mu.state.State != Ready {
		l.mu.state.State, l.mu.state.Since = Ready, now
	}
}

// rescreen leaves out of a downloaded list what must not be refused now, and was no such
// address when it was downloaded.
func (l *List) rescreen() {
	if l.settings.URL == "" {
		return
	}
	networks, _, err := l.kept()
	if err != nil {
		return // it is screened when it is downloaded
	}
	kept, left := screen(networks, l.o.protected)
	set := ipset.Of(kept)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.content.Store(&content{set: set})
	l.mu.state.Entries = set.Len()
	l.mu.state.Issues = append(withoutDropped(l.mu.state.Issues), left.issues()...)
}

func withoutDropped(issues []Issue) (out []Issue) {
	for _, i := range issues {
		if i.Code != "entries_too_wide" && i.Code != "entries_protected" {
			out = append(out, i)
		}
	}
	return out
}

// protected returns why a network must not be refused, "" if it may be.
func (o *Options) protected(p netip.Prefix) string {
	if o.Protected == nil {
		return ""
	}
	return o.Protected(p)
}
