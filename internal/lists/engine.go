package lists

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"headgate/internal/clock"
	"headgate/internal/lists/crowdsec"
	"headgate/internal/server/safedial"
	"headgate/internal/setting/ipset"
)

// wholeEvery is how often all decisions of an engine are read, in case a delta was lost.
const wholeEvery = time.Hour

// followCrowdSec asks an engine for its decisions.
func (l *List) followCrowdSec(ctx context.Context) {
	c := l.settings.CrowdSec
	transport := safedial.Transport(l.o.Roots)
	defer transport.CloseIdleConnections()
	client := crowdsec.New(c.URL, c.Key, l.o.Version, transport)
	var decisions crowdsec.Decisions
	var whole time.Time // when all were read
	first := true
	for {
		now := l.o.Clock()
		delta, err := client.Stream(ctx, now.Sub(whole) >= wholeEvery)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			l.engineFailed(err)
		} else {
			if delta.Whole {
				whole = now
			}
			l.decide(&decisions, delta, first)
			first = false
		}
		l.noteFetch(l.o.Clock().Add(c.Interval.D()))
		if !clock.Sleep(ctx, c.Interval.D()) {
			return
		}
	}
}

// decide takes new and deleted decisions into the list. The first ones replace what was
// kept of the last run.
func (l *List) decide(d *crowdsec.Decisions, delta crowdsec.Delta, first bool) {
	var left dropped
	add, remove := d.Apply(delta, func(p netip.Prefix) bool {
		kept, one := screen([]netip.Prefix{p}, l.o.protected)
		left.count(&one)
		return len(kept) > 0
	})
	was := l.content.Load()
	var set *ipset.Set
	if was != nil && !first {
		set = was.set
	}
	if len(add)+len(remove) > 0 || was == nil || first || was.all || l.failedBefore() {
		l.put(set.With(add, remove), left.issues())
	} else {
		l.unchanged()
	}
	if len(add)+len(remove) > 0 || first {
		if err := l.keep(l.networks()); err != nil {
			l.log.Warn("decisions cannot be saved for the next start", "error", err)
		}
	}
}

// count adds what else was left out.
func (d *dropped) count(more *dropped) {
	if d.wide += more.wide; d.firstWide == "" {
		d.firstWide = more.firstWide
	}
	if d.protected += more.protected; d.firstProtected == "" {
		d.firstProtected, d.why = more.firstProtected, more.why
	}
}

// networks returns what is in the list.
func (l *List) networks() []netip.Prefix {
	c := l.content.Load()
	if c == nil {
		return nil
	}
	return c.set.Networks()
}

func (l *List) failedBefore() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.state.State != Ready
}

// engineFailed notes that the engine cannot be asked, and does what on_failure says.
func (l *List) engineFailed(err error) {
	hint := "start the engine, or check the URL"
	if errors.Is(err, crowdsec.ErrKey) {
		hint = "make a key with: cscli bouncers add headgate"
	}
	var what string
	switch l.settings.CrowdSec.OnFailure {
	case Pass:
		what = "its decisions are not used (on_failure: pass)"
		l.content.Store(&content{})
	case Deny:
		what = "every address counts as listed (on_failure: deny)"
		set := ipset.Of(nil)
		if c := l.content.Load(); c != nil {
			set = c.set
		}
		l.content.Store(&content{set: set, all: true})
	default:
		what = "its last decisions are used"
	}
	l.fail(Issue{"list_unavailable", fmt.Sprintf("the CrowdSec engine cannot be asked: %v; %s", err, what), hint})
}
