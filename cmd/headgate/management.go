package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/admin"
	"headgate/internal/admin/api"
	"headgate/internal/admin/watch"
	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/control"
	"headgate/internal/event"
	"headgate/internal/notice"
	"headgate/internal/operator"
	"headgate/internal/pair"
	"headgate/internal/update"
	"headgate/internal/upgrade"
)

// setupFile holds the token for making the first user, below the state directory.
const setupFile = "setup-token"

// auditFile holds audit records that wait for the store of several machines, below the state
// directory.
const auditFile = "audit-waiting"

// spreadEvents is how often a machine that shares its state writes events, at most.
const spreadEvents = time.Second

// management is the management API of a server.
type management struct {
	api       *api.API // nil if there is none
	operators *operator.Operators
	events    *event.Log // nil if there are none
	log       *slog.Logger
	file      string // holds the token of the set-up link
	sending   atomic.Pointer[sending]
}

// openManagement makes the management API over a control: operators, events, and the
// notification of both about changes. If the store cannot be read there is no API, and
// requests are served nevertheless.
func openManagement(o serverOptions, c *control.Control, w *watch.Watch, shared *sharing, replace func() *replacer) *management {
	m := &management{log: o.log, file: filepath.Join(o.state, setupFile)}
	events, err := event.Open(context.Background(), c.Store(), o.log)
	if err != nil {
		o.log.Error("the management API is disabled", "error", err)
		return m
	}
	node := "" // of a machine that shares its state
	if o.store != "" || shared.pair != nil {
		node = o.node
		events.Spread(spreadEvents)
		events.Share(node)
	}
	operators := operator.New(operator.Options{Store: c.Store(), Events: events, Log: o.log, SetupFile: m.file, SignedIn: c.Bans().SignedIn,
		Node: node, Journal: filepath.Join(o.state, auditFile)})
	m.operators = operators
	b := thisBuild()
	instance, _ := os.Hostname() // messages then do not name the machine
	notices := notice.Options{Events: events, Store: c.Store(), Log: o.log, Instance: instance, Node: node}
	hooks := notice.New(notices)
	updates := update.NewWatch(newUpdates(), b.Version, o.log)
	settings := follow(hooks, operators, updates)
	c.Observe(settings.changed)
	c.Observe(func(e *control.Event) { events.Send(changed(e)) })
	c.Observe(w.Changed)
	c.CountPasskeys(operators.PasskeysAt)
	c.Ending(func() {
		m.api.Close()
		m.stopSending()
		w.Close()
		settings.close()
		updates.Close()
		hooks.Close()
		events.Send(event.ProcessStopping{})
		events.Close()
	})
	m.events = events
	shared.events.Store(events)
	if o.inherited == nil {
		events.Send(event.ProcessStarted{Version: b.Version})
	}
	w.Start(c, events)
	m.api = api.New(api.Options{
		Control: c, Operators: operators, Events: events, Log: o.log, Recent: c.Recent, Backup: c.Backup, Notices: hooks, Hosts: adminHosts(c),
		Trusted: trustedProxies(c), Passkeys: consoleOrigins(c), Newer: updates.Newer, Pair: shared.pair, Invitations: shared.invitations(c.Store()),
		Upgrade:      func(force bool) (upgrade.Result, error) { return replace().Upgrade(force) },
		CheckUpgrade: func(ctx context.Context) upgrade.Check { return replace().Check(ctx, o.config) },
		AdoptStore:   c.AdoptStore,
		PushStore:    c.PushStore,
		CheckStore:   shared.checker(),
		MigrateStore: shared.migrator(),
		Version:      api.Version{Version: b.Version, Go: runtime.Version(), API: "v1"},
	})
	if peers := c.Peers(); peers != nil {
		m.api.Peers = peers
		peers.Handle(api.NodeQuestion, m.api.AnswerNode)
	}
	return m
}

// startSending sends the audit records that have waited for the store, until stopSending is called.
// A process before has ended to use their file.
func (m *management) startSending() {
	if m.operators == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.operators.SendAudit(ctx)
	}()
	m.sending.Store(&sending{stop, done})
}

// sending is the goroutine of startSending.
type sending struct {
	stop context.CancelFunc
	done <-chan struct{}
}

func (m *management) stopSending() {
	if s := m.sending.Load(); s != nil {
		s.stop()
		<-s.done
	}
}

// upgraded sends the event of an upgrade from the version of the process before.
func (m *management) upgraded(from string) {
	m.events.Send(event.ProcessUpgraded{Version: thisBuild().Version, From: from})
}

// inviteFirst prints a link that lets one person become the first admin, while there is
// no user. The listener serves by now, if it can.
func (m *management) inviteFirst(listener *admin.Server) {
	if m.operators == nil {
		return
	}
	needed, err := m.operators.NeedsSetup(context.Background())
	if err != nil {
		m.log.Error("users cannot be listed", "error", err)
	}
	if err != nil || !needed {
		return
	}
	token, err := m.operators.NewSetup(context.Background())
	if errors.As(err, new(*pair.NotLeader)) {
		m.log.Info("no user exists yet: create the first one on the leader", "reason", err)
		return
	}
	if err != nil {
		m.log.Error("the first user cannot be created", "error", err, "remedy", "make the state directory writable, where users are stored, and restart headgate", "state", filepath.Dir(m.file))
		return
	}
	base := listener.URL(ownAddress())
	if base == "" {
		m.log.Info("no user exists yet: create the first one with the token in this file once the admin listener is open", "file", m.file, "good_for", "24h")
		return
	}
	m.log.Info("no user exists yet: open this link to create the first one", "link", base+"/setup#"+token, "file", m.file, "good_for", "24h")
}

// ownAddress returns an address by which other machines may reach this one, the zero
// address if there is none.
func ownAddress() netip.Addr {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}
	}
	var six netip.Addr
	for _, a := range all {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().IsGlobalUnicast() {
			continue
		}
		if p.Addr().Is4() {
			return p.Addr()
		}
		if !six.IsValid() {
			six = p.Addr()
		}
	}
	return six
}

// changed returns the event of a change.
func changed(e *control.Event) event.Payload {
	about := event.Config{Who: e.Who, Why: e.Why, Via: string(e.Via), Adopted: e.Adopted}
	digits, _, _ := strings.Cut(e.Revision, ".")
	about.Revision, _ = strconv.Atoi(digits) // 0 where there is none
	switch e.Verb {
	case control.Confirmed:
		return event.ConfigConfirmed{Config: about}
	case control.Reverted:
		about.Changes = sentences(e)
		return event.ConfigReverted{Config: about, To: about.Revision, Cause: "not_confirmed"}
	case control.RevertedLocally:
		return event.ConfigReverted{Config: about, To: about.Revision, Cause: "reverted_locally"}
	case control.FellBack:
		return event.ConfigReverted{Config: about, To: about.Revision, Cause: "restart"}
	}
	if e.Refused == nil {
		about.Changes = sentences(e)
		applied := event.ConfigApplied{Config: about, ConfirmBy: e.ConfirmBy}
		for _, p := range e.Unchecked {
			applied.Unchecked = append(applied.Unchecked, p.Error())
		}
		applied.Unchecked = bounded(applied.Unchecked)
		return applied
	}
	refused := event.ConfigRefused{Config: about}
	for _, p := range e.Refused.Problems {
		refused.Problems = append(refused.Problems, p.Error())
	}
	if len(refused.Problems) == 0 {
		refused.Problems = []string{e.Refused.Error()}
	}
	refused.Problems = bounded(refused.Problems)
	return refused
}

// sentences describes a change, with warnings.
func sentences(e *control.Event) []string {
	if e.Review == nil {
		return differences(e.Difference)
	}
	return e.Review.Lines(maxSentences)
}

// maxSentences limits the description of a change in an event.
const maxSentences = 20

// differences lists the objects that a change affects.
func differences(d *diff.Difference) (words []string) {
	if d == nil {
		return nil
	}
	for _, o := range d.Objects {
		kind := config.KindOf(o.Kind)
		if kind.Single {
			words = append(words, "settings "+kind.Name+" "+string(o.Change))
			continue
		}
		words = append(words, kind.Noun+" "+o.Name+" "+string(o.Change))
	}
	return bounded(words)
}

// bounded leaves out what is too much for an event.
func bounded(lines []string) []string {
	if n := len(lines); n > maxSentences {
		return append(lines[:maxSentences:maxSentences], strconv.Itoa(n-maxSentences)+" more")
	}
	return lines
}
