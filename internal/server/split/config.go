// Package split decides which share of a route's requests goes to the candidate servers, and
// when it goes back to 0: the settings (config.go), what is counted of both groups
// (live.go, window.go), the comparison (compare.go) and the steps (program.go).
//
// It sends nothing, keeps nothing and has no clock of its own: package upstream chooses and
// counts, package control calls Advance and Compare once a second and keeps the state.
package split

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/schema"
	"headgate/internal/server/balance"
	"headgate/internal/setting/unit"
)

// Config sends a share of a route's clients to its candidate servers, which are those with
// `group: candidate`. The share can be raised on schedule or by command, and goes back to 0
// if the candidate's responses are worse than those of the stable servers. The current share
// is state: the configuration does not change.
//
// If no candidate server accepts requests, or none can be reached, the stable servers get
// the request. The candidate is no spare: if no stable server is healthy, fail_open applies
// to the stable servers alone.
type Config struct {
	// Candidate is the percentage of clients that the candidate servers get at the start.
	// With schedule, it is the first step.
	Candidate int `json:"candidate" default:"0" min:"0" max:"100" example:"5"`
	// Stable is the percentage that the other servers get. 0 or absent is what candidate
	// leaves.
	Stable int `json:"stable,omitempty" default:"0" min:"0" max:"100" example:"95"`
	// Schedule lists the steps in which the candidate's percentage grows, and how long each
	// of them lasts, from 10s to 30d. Without "every", each step waits for
	// `headgate split promote NAME`. A step is not made while the candidate has had fewer
	// than min_requests requests, or is worse.
	Schedule string `json:"schedule,omitempty" max:"256" example:"5, 25, 50, 100 every 10m"`
	// Sticky is whether a client stays in its group while the shares do not change, and
	// stays with the candidate while its share grows. Without `key`, the cookie
	// `headgate_split`, which cannot be forged, stores a number that assigns a browser to
	// a group. If false, each request is assigned at random.
	Sticky bool `json:"sticky" default:"true"`
	// Key identifies clients instead of the cookie: `client_ip`, `header:NAME` or
	// `cookie:NAME`. Requests without this header or cookie are assigned by the client
	// address. All machines assign a client to the same group.
	Key string `json:"key,omitempty" max:"256" example:"header:X-Tenant"`
	// Rollback configures when the candidate gets no more requests.
	Rollback Rollback `json:"rollback"`
}

// Rollback compares the candidate with the stable servers, in the same time window, once a
// second. If the candidate is worse, it gets no requests until an operator promotes or
// restarts the split. It is worse only if that is no coincidence: by an exact test with an
// error probability of 0.0001 for errors, and by the 99% confidence bounds of both 95th
// percentiles for times.
type Rollback struct {
	// Enabled is whether the groups are compared.
	Enabled bool `json:"enabled" default:"true"`
	// ErrorsAbove is how many times the stable servers' error ratio the candidate may have:
	// `1x` to `100x`, or `off`. Errors are responses with status 500 to 599, and requests
	// that no server has answered. Fewer than 5 errors never count.
	ErrorsAbove string `json:"errors_above" default:"2x" max:"16" example:"3x"`
	// SlowerThan is how many times the stable servers' 95th percentile of the time to the
	// response head the candidate may have: `1x` to `100x`, or `off`. Less than 5ms never
	// counts.
	SlowerThan string `json:"slower_than" default:"1.5x" max:"16" example:"2x"`
	// Within is the time window that is compared.
	Within unit.Duration `json:"within" default:"10m" min:"20s" max:"1h"`
	// MinRequests is how many requests both groups must have had in the window; with fewer,
	// nothing is decided.
	MinRequests int `json:"min_requests" default:"200" min:"20" max:"1000000"`
}

// The bounds of a schedule.
const (
	maxSteps  = 32
	minEvery  = 10 * time.Second
	maxEvery  = 30 * 24 * time.Hour
	writeKey  = "write client_ip, header:NAME or cookie:NAME"
	writePlan = "write percentages and a time, such as 5, 25, 50, 100 every 10m"
)

// Check reports problems of the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	if c.Stable != 0 && c.Stable+c.Candidate != 100 {
		at.Field("stable").Problemf(fmt.Sprintf("write %d, or remove stable", 100-c.Candidate), "stable and candidate are %d percent together", c.Stable+c.Candidate)
	}
	steps, _, fault := parseSchedule(c.Schedule)
	switch {
	case fault != "":
		at.Field("schedule").Problem(fault, writePlan)
	case len(steps) > 0 && c.Candidate != 0 && c.Candidate != steps[0]:
		at.Field("candidate").Problemf("remove candidate", "the schedule starts with %d percent", steps[0])
	}
	if _, fault := ParseKey(c.Key); fault != "" {
		at.Field("key").Problem(fault, writeKey)
	} else if c.Key != "" && !c.Sticky {
		at.Field("key").Problem("key has no effect without sticky", "remove key, or sticky: false")
	}
	c.Rollback.check(at.Field("rollback"))
}

func (r *Rollback) check(at schema.Place) {
	for _, f := range []struct{ name, value string }{{"errors_above", r.ErrorsAbove}, {"slower_than", r.SlowerThan}} {
		if _, ok := parseRatio(f.value); !ok {
			at.Field(f.name).Problemf("write a ratio from 1x to 100x, such as 2x or 1.5x, or off", "%q is not a ratio", f.value)
		}
	}
}

// parseRatio reads "2x" or "1.5x"; "off" is 0.
func parseRatio(text string) (ratio float64, ok bool) {
	if text == "off" {
		return 0, true
	}
	number, times := strings.CutSuffix(text, "x")
	ratio, err := strconv.ParseFloat(number, 64)
	return ratio, times && err == nil && ratio >= 1 && ratio <= 100
}

// ParseKey reads what clients are told apart by; "" is balance.ByNothing: the cookie.
func ParseKey(text string) (c balance.Choice, fault string) {
	switch {
	case text == "":
		return c, ""
	case text == "client_ip":
		return balance.Choice{Method: balance.Hash, By: balance.ByClient}, ""
	case strings.HasPrefix(text, "header:"), strings.HasPrefix(text, "cookie:"):
		c, fault, _ = balance.Parse("hash:" + text)
		return c, fault
	}
	return c, fmt.Sprintf("unknown value %q", text)
}

// parseSchedule reads "5, 25, 50, 100 every 10m". Every is 0 for steps by command.
func parseSchedule(text string) (steps []int, every time.Duration, fault string) {
	if text == "" {
		return nil, 0, ""
	}
	list, time, timed := strings.Cut(text, "every")
	if timed {
		d, err := unit.ParseDuration(strings.TrimSpace(time))
		if every = d.D(); err != nil || every < minEvery || every > maxEvery {
			return nil, 0, "the time of the steps cannot be read, or is not between 10s and 30d"
		}
	}
	for part := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(part), "%"))
		if err != nil || n < 1 || n > 100 {
			return nil, 0, fmt.Sprintf("%q is not a percentage from 1 to 100", strings.TrimSpace(part))
		}
		steps = append(steps, n)
	}
	switch {
	case !slices.IsSorted(steps) || len(slices.Compact(slices.Clone(steps))) < len(steps):
		return nil, 0, "the steps do not grow"
	case len(steps) > maxSteps:
		return nil, 0, fmt.Sprintf("there are more than %d steps", maxSteps)
	}
	return steps, every, ""
}
