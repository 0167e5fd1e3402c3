// Command headgate is a reverse proxy: it listens on ports, matches requests by
// host and path, and passes them on to servers. "headgate help" tells its
// commands; docs/guides/running.md how to run it.
//
// This package holds the command line, signals and what systemd wants to know.
// Everything else is in internal.
package main

import "os"

func main() {
	os.Exit(execute(os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr}))
}
