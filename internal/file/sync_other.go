//go:build !unix

package file

// SyncDir does nothing: this system keeps the names in a folder by itself.
func SyncDir(string) error { return nil }
