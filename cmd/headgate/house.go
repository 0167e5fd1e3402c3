package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"

	"headgate/internal/admin"
	"headgate/internal/admin/console"
	"headgate/internal/admin/watch"
	"headgate/internal/control"
	"headgate/internal/discovery/docker"
	"headgate/internal/metrics"
	"headgate/internal/ports/listen"
)

// openHouse makes the house that run and demo serve with: a control, and above it
// the admin listener, which takes part in its changes.
func openHouse(o houseOptions) (house, error) {
	b, w := thisBuild(), watch.New(o.log)
	begun := &atReady{next: o.ready}
	shared := &sharing{houseOptions: o}
	c, err := control.New(control.Options{
		Share:      shared.opener(),
		Node:       o.node,
		Watcher:    w,
		Log:        o.log,
		ConfigFile: o.config,
		StateDir:   o.state,
		StateKey:   o.key,
		Strict:     o.strict,
		Build:      metrics.Build{Version: b.Version, Revision: b.Revision},
		Ready:      begun.ready,
		Docker:     docker.Open,
	})
	if err != nil {
		return nil, err
	}
	shared.control.Store(c)
	if o.changed != nil {
		c.Observe(func(*control.Event) { o.changed() })
	}
	m := openManagement(o, c, w)
	options := admin.Options{
		Log: o.log, Instance: newInstance(o), Metrics: c.Metrics(), Ready: c.Ready, Listen: listen.Listener, API: m.api, Console: console.New(), Hosts: adminHosts(c),
		Status: func(proxy string) any {
			s := c.StatusOf(proxy)
			if proxy != "" && len(s.Proxies)+len(s.TCPProxies)+len(s.UDPProxies) == 0 {
				return nil
			}
			return s
		},
	}
	listener := admin.New(options)
	c.Join(listener)
	begun.do = func() { m.inviteFirst(listener) }
	return &controlled{c, listener, options}, nil
}

// atReady is told that the first configuration was applied, and tells others.
type atReady struct{ do, next func() }

func (r *atReady) ready() {
	r.do()
	if r.next != nil {
		r.next()
	}
}

// newInstance returns what this process tells of itself on this machine.
func newInstance(o houseOptions) *admin.Instance {
	return &admin.Instance{ID: rand.Text(), Config: o.config, State: o.state, PID: os.Getpid(), Version: thisBuild().Version}
}

// controlled is a control with an admin listener and the admin socket.
type controlled struct {
	*control.Control
	admin   *admin.Server
	options admin.Options
}

// Run is that of the control. The admin listener and socket tell how things stand until
// the last connection has drained. Requests are served without a socket too.
func (c *controlled) Run(ctx context.Context) error {
	defer c.admin.Close()
	path := admin.SocketPath(c.options.Instance.State)
	c.options.Instance.Socket = path // before anybody can ask
	socket, err := admin.OpenSocket(path, c.options)
	if err != nil {
		c.options.Instance.Socket = ""
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		c.options.Log.Warn("there is no admin socket; commands need --admin and a token", "error", err)
	}
	defer socket.Close()
	return c.Control.Run(ctx)
}
