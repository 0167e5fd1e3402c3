//go:build !unix

package docker

import "io/fs"

// owners says who may use a file.
func owners(fs.FileInfo) string { return "belongs to another user" }

// ourselves says as whom this process runs.
func ourselves() string { return "another user" }
