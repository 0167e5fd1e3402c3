//go:build !linux

package main

// capabilityProblem returns "": no process is replaced on this system.
func capabilityProblem(string) string { return "" }
