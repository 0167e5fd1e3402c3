//go:build !linux

package local

import "errors"

// doTask is for systems on which a test can mount.
func doTask(string, string) error { return errors.New("nothing to do here") }
