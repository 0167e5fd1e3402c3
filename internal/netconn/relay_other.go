//go:build !linux

package netconn

import "errors"

var errNoPipe = errors.New("no pipe")

// canPour reports that bytes are copied on this system.
func canPour(_, _ *Conn) bool { return false }

func (d *direction) pour() (int64, error) { return 0, errNoPipe }

func notConnected(error) bool { return false }
