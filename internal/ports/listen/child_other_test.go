//go:build !linux

package listen

func isChild() bool { return false }

func runChild() {}
