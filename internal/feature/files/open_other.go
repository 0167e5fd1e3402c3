//go:build !unix

package files

import "os"

// openFlags open a file for reading.
const openFlags = os.O_RDONLY

// maxOpen returns how many files may be open at once.
func maxOpen() int64 { return maxOpenFiles }
