// Package interop runs the headgate binary against the programs and libraries
// that people put in front of it and behind it.
//
// It is a module of its own, so that what its tests need never comes near
// headgate's own go.mod. TestMain builds the binary once; a test starts it with a
// configuration (start), changes that (gate.apply), and talks to it.
package interop
