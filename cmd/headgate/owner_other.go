//go:build !unix

package main

// actAsOwner does nothing: rights are not those of who has made a file here.
func actAsOwner(string) error { return nil }
