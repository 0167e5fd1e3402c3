//go:build !unix

package main

import "os"

// kill ends the process: other systems have no other signal to send.
func kill(p *os.Process, _ string) error { return p.Kill() }
