package netconn

import (
	"net"
	"time"
)

// alive is how a peer that is gone without a word is found.
var alive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// KeepAlive makes the system ask on a silent connection whether its peer is still
// there. A connection of another kind than TCP is left alone, and one that is closed has
// no need of it.
func KeepAlive(nc net.Conn) {
	if tcp, ok := nc.(interface {
		SetKeepAliveConfig(net.KeepAliveConfig) error
	}); ok {
		_ = tcp.SetKeepAliveConfig(alive)
	}
}

// keepAlive is KeepAlive for what is below c.
func (c *Conn) keepAlive() {
	nc := c.nc
	if c.lazy != nil {
		nc = c.lazy.nc
	}
	KeepAlive(nc)
}
