//go:build !linux

package postgres

import (
	"syscall"
	"time"
)

// limitUnacknowledged does nothing: the system has no such limit.
func limitUnacknowledged(time.Duration) func(network, address string, c syscall.RawConn) error {
	return nil
}
