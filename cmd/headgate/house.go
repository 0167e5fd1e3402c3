package main

import (
	"context"

	"headgate/internal/admin"
	"headgate/internal/admin/watch"
	"headgate/internal/control"
	"headgate/internal/metrics"
	"headgate/internal/ports/listen"
)

// openHouse makes the house that run and demo serve with: a control, and above it
// the admin listener, which takes part in its changes.
func openHouse(o houseOptions) (house, error) {
	b, w := thisBuild(), watch.New()
	c, err := control.New(control.Options{
		Watcher:    w,
		Log:        o.log,
		ConfigFile: o.config,
		StateDir:   o.state,
		Strict:     o.strict,
		Build:      metrics.Build{Version: b.Version, Revision: b.Revision},
		Ready:      o.ready,
	})
	if err != nil {
		return nil, err
	}
	listener := admin.New(admin.Options{
		Log: o.log, Metrics: c.Metrics(), Ready: c.Ready, Listen: listen.Listener, Purge: c.Purge, API: openManagement(o, c, w),
		Status: func(proxy string) any {
			s := c.StatusOf(proxy)
			if proxy != "" && len(s.Proxies)+len(s.TCPProxies)+len(s.UDPProxies) == 0 {
				return nil
			}
			return s
		},
	})
	c.Join(listener)
	return &controlled{c, listener}, nil
}

// controlled is a control with an admin listener.
type controlled struct {
	*control.Control
	admin *admin.Server
}

// Run is that of the control. The admin listener tells how things stand until the
// last connection has drained.
func (c *controlled) Run(ctx context.Context) error {
	defer c.admin.Close()
	return c.Control.Run(ctx)
}
