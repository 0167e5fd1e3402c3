//go:build !linux

package netconn

import "io"

// within is a wait in which TLS reads; there is none on this system.
type within struct{ on bool }

func (*Conn) servesWithin() bool { return false }

func (*Lazy) readWithin([]byte) (int, error) { return 0, io.ErrNoProgress }
