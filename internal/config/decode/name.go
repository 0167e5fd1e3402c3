package decode

import (
	"fmt"

	"headgate/internal/server/target"
)

// maxName is the longest name of an object.
const maxName = 128

// CheckName validates the name of a port or proxy, which is used in logs, metrics and URLs
// of the API.
func CheckName(name string) *target.Fault {
	const remedy = "use letters, digits, dots, hyphens and underscores, a letter or digit first"
	switch {
	case name == "":
		return wrong("the name is empty", remedy)
	case len(name) > maxName:
		return wrong(fmt.Sprintf("the name is longer than %d characters", maxName), "shorten it")
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '.' && c != '-' && c != '_') {
			return wrong(fmt.Sprintf("the name %q contains an invalid character", Shorten(name)), remedy)
		}
	}
	return nil
}
