package docker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// container is a container in the format of /containers/json, with the fields that
// are used here. Engines from API 1.40 on and Podman use it.
type container struct {
	ID     string `json:"Id"`
	Names  []string
	Ports  []portMapping
	Labels map[string]string
	// State is running, paused, restarting, ….
	State string
	// Status is a text for people, such as "Up 3 seconds (health: starting)".
	Status string
	// Health exists since API 1.52. Before, it is part of Status.
	Health     healthStatus
	HostConfig struct{ NetworkMode string }
	// Created is in seconds since 1970.
	Created         int64
	NetworkSettings struct{ Networks map[string]*attachment }

	name string
}

// portMapping is a port of a container that its image exposes, or that is published.
type portMapping struct {
	// IP is the address of the host, "" if the port is not published.
	IP          string
	PrivatePort uint16
	// PublicPort is the port of the host, 0 if the port is not published.
	PublicPort uint16
	// Type is tcp, udp or sctp.
	Type string
}

// attachment is a container's place in a network.
type attachment struct {
	IPAddress         string
	GlobalIPv6Address string
	Gateway           string
}

// healthStatus is healthy, unhealthy or starting; "" of a container without a check.
type healthStatus string

// UnmarshalJSON reads an object with a status, or a status alone.
func (h *healthStatus) UnmarshalJSON(data []byte) error {
	var object struct{ Status string }
	if json.Unmarshal(data, &object) == nil {
		*h = healthStatus(object.Status)
		return nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		*h = healthStatus(text)
	}
	return nil // what cannot be read is not known
}

// The states of health.
const (
	healthy   healthStatus = "healthy"
	unhealthy healthStatus = "unhealthy"
	starting  healthStatus = "starting"
)

// health returns what the container's health check says, "" for a container without
// one.
func (c *container) health() healthStatus {
	switch {
	case c.Health == "none":
		return ""
	case c.Health != "":
		return c.Health
	case strings.HasSuffix(c.Status, "(health: starting)"), strings.HasSuffix(c.Status, "(starting)"):
		return starting
	case strings.HasSuffix(c.Status, "(unhealthy)"):
		return unhealthy
	case strings.HasSuffix(c.Status, "(healthy)"):
		return healthy
	}
	return ""
}

// secondsUp is the start of a status in the first minute.
var secondsUp = regexp.MustCompile(`^Up (Less than a second|(\d+) seconds?)\b`)

// upFor returns how long the container has been running, according to its status:
// exact within the first minute, and at least a minute after it. It returns false for
// a status without that.
func (c *container) upFor() (time.Duration, bool) {
	m := secondsUp.FindStringSubmatch(c.Status)
	switch {
	case m != nil:
		n, _ := strconv.Atoi(m[2])
		return time.Duration(n) * time.Second, true
	case strings.HasPrefix(c.Status, "Up "):
		return time.Minute, true
	}
	return 0, false
}

// minutesUp is the start of a status in the first hour, except the first
// minute.
var minutesUp = regexp.MustCompile(`^Up (About a minute|(\d+) minutes?)\b`)

// startedAfter reports whether the container was certainly started after a time,
// according to its status, which was read at another. This detects one that was stopped
// and runs again if the events about it were lost together with their stream.
func (c *container) startedAfter(at, asked time.Time) bool {
	if up, told := c.upFor(); told && up < time.Minute {
		return asked.Add(-up - time.Second).After(at)
	}
	m := minutesUp.FindStringSubmatch(c.Status)
	if m == nil {
		return false
	}
	n, _ := strconv.Atoi(m[2])
	return asked.Add(-time.Duration(max(n, 1)+1) * time.Minute).After(at)
}

// address returns the container's address in a network, invalid for none.
func (a *attachment) address() netip.Addr {
	if a == nil {
		return netip.Addr{}
	}
	for _, text := range []string{a.IPAddress, a.GlobalIPv6Address} {
		if ip, err := netip.ParseAddr(text); err == nil && !ip.IsUnspecified() && !ip.IsMulticast() && ip.Zone() == "" {
			return ip.Unmap()
		}
	}
	return netip.Addr{}
}

// setName finds the container's name: the one without the names of other containers
// before it, which links create.
func (c *container) setName() {
	for _, n := range c.Names {
		n = strings.TrimPrefix(n, "/")
		if n != "" && (c.name == "" || !strings.Contains(n, "/") && strings.Contains(c.name, "/")) {
			c.name = n
		}
	}
	if c.name == "" {
		c.name = c.ID[:min(len(c.ID), 12)]
	}
	c.name = oneLine(c.name)
}

// listing is an answer of /containers/json.
type listing struct {
	// asked is the time of the request.
	asked      time.Time
	containers []*container
	// unread are containers that could not be read, by name.
	unread []unreadable
	// more is how many there are beyond the maximum.
	more int
}

// unreadable is a container of which nothing could be read.
type unreadable struct {
	name, what string
}

// readList reads a list of containers. Memory is bounded: one container that is too
// large, or that is not what it should be, leaves the others as they are.
func readList(r io.Reader) (*listing, error) {
	bounded := &io.LimitedReader{R: r, N: maxList}
	v := &values{r: bufio.NewReaderSize(bounded, 64<<10), max: maxContainer}
	l := &listing{}
	for {
		data, whole, err := v.next()
		switch {
		case err == io.EOF && v.inList:
			return l, nil
		case err == io.EOF:
			return nil, fmt.Errorf("%w: it is empty", errNoJSON)
		case err != nil && bounded.N == 0:
			return nil, fmt.Errorf("the answer is larger than %d bytes", int64(maxList))
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("the answer ends too early")
		case err != nil:
			return nil, err
		}
		l.add(data, whole)
	}
}

// add reads one container.
func (l *listing) add(data []byte, whole bool) {
	if len(l.containers) >= maxContainers {
		l.more++
		return
	}
	c := &container{}
	switch err := json.Unmarshal(data, c); {
	case !whole:
		l.unread = append(l.unread, unreadable{nameIn(data), fmt.Sprintf("the engine reports more than %d bytes about the container", maxContainer)})
	case err != nil:
		l.unread = append(l.unread, unreadable{nameIn(data), "the engine's data about the container cannot be read: " + oneLine(err.Error())})
	case c.ID == "":
		l.unread = append(l.unread, unreadable{nameIn(data), "the engine's data about the container has no Id"})
	default:
		c.setName()
		c.keepOurs()
		l.containers = append(l.containers, c)
	}
}

// nameOf is where the beginning of a container has its name.
var nameOf = regexp.MustCompile(`"Names":\s*\[\s*"/?([^"\\]{1,200})"`)

// nameIn returns the name of a container that cannot be read as a whole.
func nameIn(data []byte) string {
	if m := nameOf.FindSubmatch(data); m != nil {
		return oneLine(string(m[1]))
	}
	return ""
}

// query returns the parameters of a call with filters.
func query(filters map[string][]string) url.Values {
	if len(filters) == 0 {
		return url.Values{}
	}
	data, _ := json.Marshal(filters) // texts can be written
	return url.Values{"filters": {string(data)}}
}

// event is an event of /events.
type event struct {
	Type   string
	Action string
	// Status is what old engines and Podman have for Action.
	Status string `json:"status"`
	Actor  struct {
		ID         string
		Attributes map[string]string
	}
}

// action returns what happened.
func (e *event) action() string {
	if e.Action != "" {
		return e.Action
	}
	return e.Status
}

// about returns the id of the container that the event is about.
func (e *event) about() string {
	if e.Type == "network" {
		return e.Actor.Attributes["container"]
	}
	return e.Actor.ID
}

// concerns reports whether the event may change what is to be proxied, or how.
func (e *event) concerns() bool {
	switch action, _, _ := strings.Cut(e.action(), ":"); e.Type {
	case "container":
		switch action {
		case "start", "restart", "die", "died", "stop", "kill", "oom", "pause", "unpause", "rename", "destroy", "remove", "cleanup", "health_status", "update":
			return true
		}
	case "network":
		return action == "connect" || action == "disconnect"
	}
	return false
}
