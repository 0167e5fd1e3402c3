// Package greeting greets servers and clients with the text of a file.
package greeting

import (
	"headgate/internal/file"
	"headgate/internal/schema"
)

// Config says what the greeting is.
type Config struct {
	// Enabled switches the greeting on.
	Enabled bool `json:"enabled" default:"true"`
	// File is the file that holds the greeting.
	File string `json:"file" required:"true" max:"4096" example:"greeting.txt"`
}

// Off reports whether no greeting is added.
func (c *Config) Off() bool { return !c.Enabled }

// Check tells what is wrong with the settings.
func (c *Config) Check(at schema.Place) {
	if c.Enabled && c.File == "" {
		at.Field("file").Problem("the greeting has no file", "name one")
	}
}

// Files returns the file of the greeting.
func (c *Config) Files() []file.Wanted {
	return []file.Wanted{{Name: c.File, Max: 1 << 10, TooLarge: "more than the 1 KiB of a greeting"}}
}
