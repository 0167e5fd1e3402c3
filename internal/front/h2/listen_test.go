package h2_test

import (
	"fmt"
	"os"
	"testing"
)

// TestListen serves until it is stopped, for tools that are run by hand:
// HEADGATE_H2_LISTEN=1 for plain connections, tls for TLS, and the address of a
// server, if any, in HEADGATE_H2_SERVER.
func TestListen(t *testing.T) {
	mode := os.Getenv("HEADGATE_H2_LISTEN")
	if mode == "" {
		t.Skip("for tools that are run by hand")
	}
	var options []option
	if mode == "tls" {
		options = append(options, overTLS)
	}
	server := os.Getenv("HEADGATE_H2_SERVER")
	if server == "" {
		options = append(options, text("hello, world"))
	}
	options = append(options, quiet)
	p := newProxy(t, server, options...)
	fmt.Println("listening on", p.addr)
	select {}
}
