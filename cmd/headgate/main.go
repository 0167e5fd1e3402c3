// Command headgate is a reverse proxy: it listens on ports, matches requests by host and
// path, and forwards them to servers. "headgate help" lists its commands;
// docs/guides/running.md describes how to run it.
//
// This package is the command line, signals and the interface to systemd. Everything else
// is in internal.
package main

import "os"

func main() {
	os.Exit(execute(os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}
