//go:build !unix

package main

// actAsOwner does nothing: rights are not those of who has made a file here.
func actAsOwner(string) (back func(), err error) { return func() {}, nil }
