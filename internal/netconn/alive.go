package netconn

import (
	"net"
	"time"
)

// alive is how a peer that is gone without a word is found.
var alive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}

// KeepAlive enables TCP keep-alive probes, which detect a silent peer that has gone. It
// does nothing for a connection that is closed or is not TCP.
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
