//go:build !unix

package history

import (
	"io/fs"
	"os"
)

// mayWrite returns why a file cannot be written: it is opened for that.
func mayWrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// mayWriteFolder says nothing here: making the file does.
func mayWriteFolder(string) error { return nil }

// isReadOnly is always false here: what cannot be written is not permitted.
func isReadOnly(error) bool { return false }

// replaceable is always true here.
func replaceable(string, fs.FileInfo) bool { return true }

// giveOwner does nothing: files belong to whom the folder says.
func giveOwner(*os.File, fs.FileInfo) error { return nil }
