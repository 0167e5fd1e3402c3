//go:build !unix || solaris || aix

package local

import (
	"errors"
	"os"
)

// duplicate returns an error: locks are not handed over on this system.
func duplicate(*os.File) (*os.File, error) { return nil, errors.ErrUnsupported }
