//go:build !linux

package netconn

import "errors"

var errNoPipe = errors.New("no pipe")

func (d *direction) pour() (int64, error) { return 0, errNoPipe }

func notConnected(error) bool { return false }
