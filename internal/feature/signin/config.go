package signin

import (
	"strings"

	"headgate/internal/schema"
)

// Config makes a route the sign-in page: the place where people sign in before they enter
// applications behind a `gate`. There is at most one, with a host of its own.
type Config struct {
	// Title is the name at the top of the page. Absent is none.
	Title string `json:"title,omitempty" max:"100" example:"Example Ltd."`
}

// Check reports what is wrong with the settings at a place.
func (c *Config) Check(at schema.Place) {
	if strings.ContainsFunc(c.Title, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		at.Field("title").Problem("the title contains control characters", "remove them")
	}
}
