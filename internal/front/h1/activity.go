package h1

import (
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// activity remembers when bytes last moved in either direction of a tunnel.
type activity struct {
	idle time.Duration
	last atomic.Int64
}

func (a *activity) touch() { a.last.Store(exchange.Now()) }

// quiet returns for how long nothing has moved.
func (a *activity) quiet() time.Duration { return time.Duration(exchange.Now() - a.last.Load()) }
