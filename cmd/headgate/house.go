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
	"headgate/internal/discovery/agent"
	"headgate/internal/discovery/docker"
	"headgate/internal/discovery/httpdoc"
	"headgate/internal/metrics"
	"headgate/internal/upgrade"
)

// openServer makes what run and demo serve with: a control, and above it the admin listener,
// which participates in its changes.
func openServer(o serverOptions) (server, error) {
	b, w := thisBuild(), watch.New(o.log)
	begun, open := &atReady{next: o.ready}, make(chan struct{})
	shared, err := newSharing(&o)
	if err != nil {
		return nil, err
	}
	c, err := control.New(control.Options{
		Share:      shared.opener(),
		Node:       o.node,
		Schema:     shared.schema(),
		Machine:    shared.machine,
		Watcher:    w,
		Log:        o.log,
		ConfigFile: o.config,
		StateDir:   o.state,
		StateKey:   o.key,
		Created:    o.created,
		Strict:     o.strict,
		Build:      metrics.Build{Version: b.Version, Revision: b.Revision},
		Ready:      begun.ready,
		Inherited:  o.inherited,
		TakeOver:   takeOver(o.inherited),
		Activated:  o.activated,
		Docker:     docker.Open,
		HTTP:       httpdoc.Open,
		Agent:      agent.Open,
	})
	if err != nil {
		return nil, explainCopy(err)
	}
	shared.control.Store(c)
	if o.changed != nil {
		c.Observe(func(*control.Event) { o.changed() })
	}
	var replace *replacer
	m := openManagement(o, c, w, shared, func() *replacer { return replace })
	options := admin.Options{
		Log: o.log, Instance: newInstance(o), Metrics: c.Metrics(), NotReady: c.NotReady, Listen: inheritListener(o.inherited, o.activated), Begin: open, API: m.api, Console: console.New(), Hosts: adminHosts(c),
		Status: func(proxy string) any {
			s := c.StatusOf(proxy)
			if proxy != "" && len(s.Proxies)+len(s.TCPProxies)+len(s.UDPProxies) == 0 {
				return nil
			}
			return newStatusPage(s, shared.pair)
		},
	}
	if shared.pair != nil {
		options.Group = shared.pair
	} else if v := shared.invitations(c.Store()); v != nil {
		options.Group = v
	}
	listener := admin.New(options)
	c.Join(listener)
	r := newReplacer(o, c, listener, options, shared.pair)
	replace = r
	begun.do = func() {
		close(open)
		o.activated.closeUnused()
		m.startSending()
		if o.inherited == nil {
			m.inviteFirst(listener)
			return
		}
		o.inherited.CloseFiles()
		m.upgraded(o.inherited.Old.Version)
	}
	return &controlled{Control: c, admin: listener, options: options, replacer: r}, nil
}

// atReady runs do when the first configuration was applied, and then next.
type atReady struct{ do, next func() }

func (r *atReady) ready() {
	r.do()
	if r.next != nil {
		r.next()
	}
}

// newInstance returns the identity of this process for programs on this machine.
func newInstance(o serverOptions) *admin.Instance {
	id := rand.Text()
	o.inherited.Part(partInstance, &id) // an upgrade keeps the identity
	return &admin.Instance{ID: id, Config: o.config, State: o.state, PID: os.Getpid(), Version: thisBuild().Version}
}

// controlled is a control with an admin listener and the admin socket.
type controlled struct {
	*control.Control
	admin    *admin.Server
	options  admin.Options
	replacer *replacer
}

// Upgrade is that of the replacer.
func (c *controlled) Upgrade(force bool) (upgrade.Result, error) { return c.replacer.Upgrade(force) }

// Run runs the control. The admin listener and socket show the status until the last
// connection has drained. Without a socket, requests are served nevertheless.
func (c *controlled) Run(ctx context.Context) error {
	defer c.admin.Close()
	path := admin.SocketPath(c.options.Instance.State)
	c.options.Instance.Socket = path // before a client can connect
	socket, err := c.openSocket(path)
	if err != nil {
		c.options.Instance.Socket = ""
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		c.options.Log.Warn("there is no admin socket; commands need --admin and a token", "error", err)
	}
	r := c.replacer
	r.mu.socket = socket
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- c.Control.Run(running) }()
	select {
	case <-ctx.Done():
		if r.stop() {
			<-r.left
			return nil
		}
		end()
		err = <-ended
	case err = <-ended:
	case <-r.left:
		return nil // the new process has what would be closed here
	}
	r.closeSocket()
	return err
}

// openSocket opens the admin socket, or takes the inherited one.
func (c *controlled) openSocket(path string) (*admin.Socket, error) {
	if f := c.replacer.inherited.TakeFile(socketFile); f != nil {
		return admin.InheritSocket(path, f, c.options)
	}
	return admin.OpenSocket(path, c.options)
}
