package signin

import (
	"strings"

	"headgate/internal/file"
	"headgate/internal/gate/page"
	"headgate/internal/schema"
)

// Config makes a route the sign-in page: the place where people sign in before they enter
// applications behind a `gate`. There is at most one, with a host of its own.
type Config struct {
	// Title is the name at the top of the page. Absent is none.
	Title string `json:"title,omitempty" max:"100" example:"Example Ltd."`
	// Logo is an image above the title: the path of a PNG, JPEG, WebP, GIF or SVG file of at most
	// 64 KiB. A relative path starts at the folder of the configuration file. It is read again
	// when it changes. Absent is none.
	Logo string `json:"logo,omitempty" host:"admin" local:"true" max:"4096" example:"/etc/headgate/logo.svg"`
	// Color is the color of buttons and links, #rrggbb. Links are made darker or lighter where
	// they would not be readable, in the light or the dark theme. Absent is a blue.
	Color string `json:"color,omitempty" max:"7" example:"#0b6e4f"`
	// Launchpad is whether people who have signed in see their applications as tiles, also at
	// /sites: with the icon that the application itself has, the name (the description of the
	// proxy, if it has at most 40 bytes), and whether it is available. Otherwise they see a list
	// of hosts.
	Launchpad bool `json:"launchpad" default:"false"`
}

// maxLogo is the largest logo, in bytes.
const maxLogo = 64 << 10

// Files returns the files that the settings name.
func (c *Config) Files() []file.Wanted {
	if c.Logo == "" {
		return nil
	}
	return []file.Wanted{{Name: c.Logo, Max: maxLogo, TooLarge: "more than the 64 KiB of a logo"}}
}

// Check reports what is wrong with the settings at a place.
func (c *Config) Check(at schema.Place) {
	if strings.ContainsFunc(c.Title, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		at.Field("title").Problem("the title contains control characters", "remove them")
	}
	if c.Color != "" {
		if err := page.CheckColor(c.Color); err != nil {
			at.Field("color").Problem(err.Error(), "write six hexadecimal digits after #")
		}
	}
}
