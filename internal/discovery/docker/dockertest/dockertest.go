// Package dockertest has an engine for tests: it answers the three calls that discovery
// makes, over a real socket, in the shape of Docker's API of several versions and of
// Podman. Containers of it run nothing; a test says what becomes of them.
package dockertest

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Container is a container of the engine. A test sets what it needs before Run.
type Container struct {
	// Name is its name; the id is made of it and of Created.
	Name   string
	Labels map[string]string
	// Networks are its addresses by network.
	Networks map[string]string
	// Gateway is the gateway of all its networks.
	Gateway string
	// Mode is its network mode: "" for its first network, host, none, container:ID.
	Mode string
	// Ports are those that it exposes or publishes.
	Ports []Port
	// State is running, paused, restarting; "" is running.
	State string
	// Health is starting, healthy or unhealthy, "" without a check.
	Health string
	// Up is the time since the start as in the status: "3 seconds".
	Up string
	// Created is when it was created; zero is now.
	Created time.Time
	// Raw replaces all of it, if it is set.
	Raw string
}

// Port is a port that is exposed, or published.
type Port struct {
	Private, Public uint16
	// IP is the address at which it is published.
	IP string
	// Type is tcp unless it is set.
	Type string
}

// ID returns the id of the container.
func (c *Container) ID() string {
	sum := sha256.Sum256([]byte(c.Name + c.Created.String()))
	return hex.EncodeToString(sum[:])
}

// Engine is an engine. Its methods may be called by several goroutines at once.
type Engine struct {
	t       testing.TB
	network string
	address string
	secure  *tls.Config

	mu         sync.Mutex
	server     *http.Server
	oldest     string
	newest     string
	podman     bool
	containers []*Container
	streams    map[chan []byte]struct{}
	answers    map[string]http.HandlerFunc
	asked      map[string]int
	paths      []string
}

// New returns an engine at a Unix socket that speaks up to the API 1.52, without a
// container. It ends with the test.
func New(t testing.TB) *Engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "hg") // paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return at(t, "unix", filepath.Join(dir, "docker.sock"), nil)
}

// NewTCP returns an engine at a TCP address, with TLS if secure is not nil.
func NewTCP(t testing.TB, secure *tls.Config) *Engine {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // each Up listens anew
	return at(t, "tcp", l.Addr().String(), secure)
}

func at(t testing.TB, network, address string, secure *tls.Config) *Engine {
	e := &Engine{t: t, network: network, address: address, secure: secure, oldest: "1.40", newest: "1.52",
		streams: map[chan []byte]struct{}{}, answers: map[string]http.HandlerFunc{}, asked: map[string]int{}}
	e.Up()
	t.Cleanup(e.Down)
	return e
}

// Endpoint returns the endpoint as settings have it.
func (e *Engine) Endpoint() string { return e.network + "://" + e.address }

// SetVersions sets the oldest and the newest version of the API.
func (e *Engine) SetVersions(oldest, newest string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.oldest, e.newest = oldest, newest
}

// Podman makes the engine answer as Podman does.
func (e *Engine) Podman() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.podman, e.oldest, e.newest = true, "1.24", "1.41"
}

// Answer has a call answered otherwise, by its path without the version; nil has it
// answered as before.
func (e *Engine) Answer(path string, h http.HandlerFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answers[path] = h
}

// Calls returns how often a call was made.
func (e *Engine) Calls(path string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[path]
}

// Paths returns the paths of requests, with their version.
func (e *Engine) Paths() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.paths)
}

// Down ends the engine and cuts all connections. Its containers stay.
func (e *Engine) Down() {
	e.mu.Lock()
	s := e.server
	e.server = nil
	e.mu.Unlock()
	if s != nil {
		s.Close()
		e.Cut()
	}
}

// Up starts the engine again.
func (e *Engine) Up() {
	e.t.Helper()
	if e.network == "unix" {
		os.Remove(e.address)
	}
	l, err := net.Listen(e.network, e.address)
	if err != nil {
		e.t.Fatal(err)
	}
	if e.secure != nil {
		l = tls.NewListener(l, e.secure)
	}
	s := &http.Server{Handler: http.HandlerFunc(e.serve), ReadHeaderTimeout: 10 * time.Second}
	e.mu.Lock()
	e.server = s
	e.mu.Unlock()
	go s.Serve(l)
}

// Cut ends the streams of events.
func (e *Engine) Cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.streams {
		close(s)
		delete(e.streams, s)
	}
}

// Run starts a container.
func (e *Engine) Run(c *Container) *Container {
	if c.Created.IsZero() {
		c.Created = time.Now()
	}
	e.mu.Lock()
	e.containers = slices.Insert(e.containers, 0, c) // engines list the newest first
	e.mu.Unlock()
	for name := range c.Networks {
		e.Emit("network", "connect", name, map[string]string{"container": c.ID(), "name": name})
	}
	e.happens(c, "start", nil)
	return c
}

// Kill sends an event that a container got a signal.
func (e *Engine) Kill(c *Container, signal string) {
	e.happens(c, "kill", map[string]string{"signal": signal})
}

// Die ends a container.
func (e *Engine) Die(c *Container) {
	e.mu.Lock()
	e.containers = slices.DeleteFunc(e.containers, func(o *Container) bool { return o == c })
	e.mu.Unlock()
	action := "die"
	if e.podman {
		action = "died"
	}
	e.happens(c, action, nil)
}

// Change changes a container and sends an event, if action is not "".
func (e *Engine) Change(c *Container, action string, change func()) {
	e.mu.Lock()
	change()
	e.mu.Unlock()
	if action != "" {
		e.happens(c, action, nil)
	}
}

// Attach changes the networks of a container.
func (e *Engine) Attach(c *Container, network, address string) {
	e.mu.Lock()
	action := "connect"
	if address == "" {
		action = "disconnect"
		delete(c.Networks, network)
	} else {
		c.Networks[network] = address
	}
	e.mu.Unlock()
	e.Emit("network", action, network, map[string]string{"container": c.ID(), "name": network})
}

func (e *Engine) happens(c *Container, action string, more map[string]string) {
	attributes := map[string]string{"name": c.Name, "image": "app:1"}
	for k, v := range c.Labels {
		attributes[k] = v
	}
	for k, v := range more {
		attributes[k] = v
	}
	e.Emit("container", action, c.ID(), attributes)
}

// Emit sends an event.
func (e *Engine) Emit(kind, action, id string, attributes map[string]string) {
	now := time.Now()
	v := map[string]any{
		"Type": kind, "Action": action, "scope": "local", "time": now.Unix(), "timeNano": now.UnixNano(),
		"Actor": map[string]any{"ID": id, "Attributes": attributes},
	}
	if kind == "container" {
		v["status"], v["id"], v["from"] = action, id, "app:1"
	}
	data, _ := json.Marshal(v)
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.streams {
		select {
		case s <- append(data, '\n'):
		default:
			e.t.Errorf("the events are not read")
		}
	}
}

// serve answers a call.
func (e *Engine) serve(w http.ResponseWriter, rq *http.Request) {
	path, version := rq.URL.Path, ""
	if rest, ok := strings.CutPrefix(path, "/v"); ok {
		version, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	e.mu.Lock()
	e.asked[path]++
	e.paths = append(e.paths, rq.URL.Path)
	other, oldest, newest, podman := e.answers[path], e.oldest, e.newest, e.podman
	e.mu.Unlock()
	w.Header().Set("Api-Version", newest)
	if podman {
		w.Header().Set("Libpod-Api-Version", "4.3.1")
	}
	switch {
	case rq.Method != http.MethodGet:
		fail(w, http.StatusForbidden, "this engine only answers questions")
	case other != nil:
		other(w, rq)
	case version != "" && older(version, oldest):
		fail(w, http.StatusBadRequest, fmt.Sprintf("client version %s is too old. Minimum supported API version is %s, please upgrade your client to a newer version", version, oldest))
	case version != "" && older(newest, version):
		fail(w, http.StatusBadRequest, fmt.Sprintf("client version %s is too new. Maximum supported API version is %s", version, newest))
	case path == "/_ping":
		fmt.Fprint(w, "OK")
	case path == "/containers/json":
		e.list(w, rq)
	case path == "/events":
		e.events(w, rq)
	default:
		fail(w, http.StatusForbidden, "not one of the three calls: "+path)
	}
}

// older reports whether a version of the API is older than another.
func older(a, b string) bool {
	var x, y [2]int
	fmt.Sscanf(a, "%d.%d", &x[0], &x[1])
	fmt.Sscanf(b, "%d.%d", &y[0], &y[1])
	return x[0] < y[0] || x[0] == y[0] && x[1] < y[1]
}

func fail(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"message": message})
}

// list answers /containers/json.
func (e *Engine) list(w http.ResponseWriter, rq *http.Request) {
	var filters struct {
		ID    json.RawMessage `json:"id"`
		Label []string        `json:"label"`
	}
	if text := rq.URL.Query().Get("filters"); text != "" {
		if err := json.Unmarshal([]byte(text), &filters); err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	out := make([]json.RawMessage, 0, len(e.containers))
	for _, c := range e.containers {
		if c.has(filters.Label) {
			out = append(out, e.describe(c))
		}
	}
	json.NewEncoder(w).Encode(out)
}

// has reports whether a container has one of the labels, if there are any.
func (c *Container) has(labels []string) bool {
	for _, l := range labels {
		key, value, valued := strings.Cut(l, "=")
		if have, ok := c.Labels[key]; !ok || valued && have != value {
			return false
		}
	}
	return true
}

// describe describes a container in the format of the engine's version.
func (e *Engine) describe(c *Container) json.RawMessage {
	if c.Raw != "" {
		return json.RawMessage(c.Raw)
	}
	networks, mode := map[string]any{}, c.Mode
	for name, address := range c.Networks {
		networks[name] = map[string]any{"IPAMConfig": nil, "NetworkID": hex.EncodeToString([]byte(name)), "Gateway": c.Gateway, "IPAddress": address, "GlobalIPv6Address": "", "MacAddress": "02:42:ac:11:00:02"}
		if mode == "" {
			mode = name
		}
	}
	if c.Mode == "host" {
		networks["host"] = map[string]any{"IPAddress": "", "Gateway": ""}
	}
	ports := []map[string]any{}
	for _, p := range c.Ports {
		port := map[string]any{"PrivatePort": p.Private, "Type": p.Type}
		if p.Type == "" {
			port["Type"] = "tcp"
		}
		if p.Public != 0 {
			port["PublicPort"], port["IP"] = p.Public, p.IP
		}
		ports = append(ports, port)
	}
	state, up := c.State, c.Up
	if state == "" {
		state = "running"
	}
	if up == "" {
		up = "3 seconds"
	}
	v := summary{
		ID: c.ID(), Names: []string{"/" + c.Name}, Image: "app:1", Command: "/app", Created: c.Created.Unix(),
		Ports: ports, Labels: c.Labels, State: state, Status: "Up " + up,
		HostConfig: map[string]any{"NetworkMode": mode}, NetworkSettings: map[string]any{"Networks": networks}, Mounts: []any{},
	}
	switch {
	case c.Health == "" || e.podman: // Podman keeps it to itself
	case older(e.newest, "1.52"):
		text := c.Health
		if text == "starting" {
			text = "health: starting"
		}
		v.Status = "Up " + up + " (" + text + ")"
	default:
		v.Health = map[string]any{"Status": c.Health, "FailingStreak": 0}
	}
	data, err := json.Marshal(v)
	if err != nil {
		e.t.Error(err)
	}
	return data
}

// summary is a container with its fields in the order of engines.
type summary struct {
	ID              string `json:"Id"`
	Names           []string
	Image           string
	Command         string
	Created         int64
	Ports           []map[string]any
	Labels          map[string]string
	State           string
	Status          string
	Health          map[string]any `json:",omitempty"`
	HostConfig      map[string]any
	NetworkSettings map[string]any
	Mounts          []any
}

// events answers /events until the stream is cut.
func (e *Engine) events(w http.ResponseWriter, rq *http.Request) {
	s := make(chan []byte, 4096)
	e.mu.Lock()
	e.streams[s] = struct{}{}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.streams, s)
		e.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case data, ok := <-s:
			if !ok {
				return
			}
			w.Write(data)
			w.(http.Flusher).Flush()
		case <-rq.Context().Done():
			return
		}
	}
}
