// Package disk gives configurations that stand in files: read whole, bounded, and
// never waiting for anybody.
package disk

import (
	"fmt"

	"headgate/internal/config"
	"headgate/internal/file"
)

// Read reads a configuration file. The error says what is wrong with it: not
// there, not a regular file, too large, not readable.
func Read(name string) ([]byte, error) {
	const most = int64(config.MaxFileSize)
	return file.Read(name, most, fmt.Sprintf("a configuration has at most %d", most))
}
