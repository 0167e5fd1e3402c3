package errorpages

import (
	"fmt"
	"strconv"

	"headgate/internal/file"
	"headgate/internal/schema"
	"headgate/internal/setting/page"
)

// Config is a list of pages.
type Config []Page

// Page is the body of responses with certain statuses. A page for one status takes
// precedence over one for its class.
type Page struct {
	// Status are the statuses of the page: `404`, or a class, `4xx` or `5xx`.
	Status []Status `json:"status" label:"true" required:"true" max:"100" example:"[404]"`
	page.Config
	// Upstream is whether responses of servers and fixed responses get the page, too,
	// instead of their own body. Otherwise only responses of headgate itself do.
	Upstream bool `json:"upstream" label:"true" default:"false"`
	// SendStatus is the status that is sent with the page. Absent means the original
	// status.
	SendStatus int `json:"send_status,omitempty" label:"true" min:"200" max:"599" example:"200"`
}

// Status is a status from 400 to 599, or a class of them: 4xx or 5xx.
type Status string

// UnmarshalText reads a status or a class.
func (s *Status) UnmarshalText(text []byte) error {
	t := string(text)
	n, err := strconv.Atoi(t)
	if t != "4xx" && t != "5xx" && (err != nil || len(t) != 3 || n/100 != 4 && n/100 != 5) {
		return fmt.Errorf("%q is not an error status; write one like 404, or 4xx or 5xx", t)
	}
	*s = Status(t)
	return nil
}

// MarshalText writes the status.
func (s Status) MarshalText() ([]byte, error) { return []byte(s), nil }

// JSONForm returns how JSON may write a status.
func (s Status) JSONForm() (types []string, pattern string) {
	return []string{"string", "integer"}, "^[45]([0-9][0-9]|xx)$"
}

// Off reports whether there is no page, as in the empty list by which a route takes
// nothing over from its proxy.
func (c Config) Off() bool { return len(c) == 0 }

// Files returns the files that the pages name.
func (c Config) Files() (files []file.Wanted) {
	for i := range c {
		files = append(files, c[i].Config.Files()...)
	}
	return files
}

// Check reports problems of the pages, whose list is at at.
func (c Config) Check(at schema.Place) {
	seen := map[Status]int{}
	for i := range c {
		p, place := &c[i], at.Index(i).Called("error page", c[i].File)
		for j, s := range p.Status {
			if first, twice := seen[s]; twice && s != "" {
				place.Field("status").Index(j).Problemf("remove one of them", "error_pages[%d] is for %s too", first, s)
			}
			seen[s] = i
		}
		if len(p.Status) == 0 && !place.Field("status").Reported() {
			place.Field("status").Problem("the page has no status", "add one like 404 or 5xx")
		}
		if p.Body == "" && p.File == "" && !place.Field("body").Reported() && !place.Field("file").Reported() {
			place.Problem("the page has neither body nor file", "add one of them")
		}
		p.CheckPage(place)
		if n := p.SendStatus; n == 204 || n == 205 || n == 206 || n == 304 {
			place.Field("send_status").Problemf("write another one", "a response with status %d has no page", n)
		}
	}
}
