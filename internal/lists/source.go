package lists

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"time"

	"headgate/internal/clock"
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
		l.fail(Issue{"list_unavailable", "read " + l.settings.File + ": " + err.Error(), "write one address or network per line"})
		return
	}
	l.put(ipset.Of(p.networks), p.issues())
}

// issues returns what an operator should know of lines that are no entries.
func (p *parsed) issues() []Issue {
	if p.wrong == 0 {
		return nil
	}
	return []Issue{{"entries_invalid", fmt.Sprintf("%s neither an address nor a network, the first is line %d", count(p.wrong, "line is", "lines are"), p.firstWrong), "correct them, or put # in front"}}
}

// followFile reads the file again when it has changed.
func (l *List) followFile(ctx context.Context) {
	for clock.Sleep(ctx, l.o.filePause) {
		if file.StampOf(l.path()) != l.stamp {
			l.readFile()
		}
	}
}

// followURL downloads the list again and again.
func (l *List) followURL(ctx context.Context) {
	client := download.New(l.o.Agent, l.o.Roots)
	defer client.Close()
	client.Follow(ctx, l.due(), download.Follower{
		URL: l.settings.URL, Max: maxBytes, Interval: l.settings.Interval.D(), Planned: l.planned, Take: l.downloaded,
	})
}

// downloaded makes a text that was downloaded the list, or notes why it cannot be.
func (l *List) downloaded(data []byte, err error) error {
	defer l.checked()
	if errors.Is(err, download.ErrUnchanged) {
		l.unchanged()
		return nil
	}
	if err == nil {
		err = l.install(data)
	}
	if err != nil {
		l.failed(err)
	}
	return err
}

// due returns when the list is downloaded first: at once where there is nothing to use.
func (l *List) due() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return download.First(l.settings.Interval.D(), l.mu.state.Loaded, l.o.Clock())
}

// checked notes that the source was asked just now.
func (l *List) checked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.state.Checked = l.o.Clock()
}

func (l *List) planned(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.state.Next = l.o.Clock().Add(pause)
}

// errShrunk refuses a list that has lost most of its entries.
var errShrunk = errors.New("the list shrank")

// install makes a downloaded text the list, or says why it cannot be.
func (l *List) install(data []byte) error {
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
	now := l.o.Clock()
	s := &l.mu.state
	s.Loaded, s.Issues = now, withoutFailure(s.Issues)
	recovered := s.State != Ready
	if recovered {
		s.State, s.Since = Ready, now
	}
	entries := s.Entries
	l.mu.told, l.mu.stale = true, false
	l.mu.Unlock()
	if recovered {
		l.notify(EventLoaded, entries, entries, now, "")
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
