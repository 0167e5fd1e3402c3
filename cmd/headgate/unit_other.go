//go:build !linux

package main

import "context"

// unitProblems is for systems with systemd.
func unitProblems(context.Context, int) []string { return nil }
