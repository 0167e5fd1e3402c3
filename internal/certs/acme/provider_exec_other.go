//go:build !unix

package acme

import "os/exec"

// killTogether does nothing: processes have no groups here.
func killTogether(*exec.Cmd) {}
