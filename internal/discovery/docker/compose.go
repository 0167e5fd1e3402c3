package docker

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config"
	"headgate/internal/discovery"
)

// Bounds of a Compose file.
const (
	maxCompose  = 4 << 20
	maxServices = 1000
	maxRange    = 1000 // ports of one range
)

// composeFile is what is read of a Compose file.
type composeFile struct {
	Name     string                    `yaml:"name"`
	Services map[string]composeEntry   `yaml:"services"`
	Networks map[string]composeNetwork `yaml:"networks"`
}

// composeEntry is a service. What can be written in several ways is any.
type composeEntry struct {
	Image         string `yaml:"image"`
	ContainerName string `yaml:"container_name"`
	Labels        any    `yaml:"labels"`
	Ports         []any  `yaml:"ports"`
	Expose        []any  `yaml:"expose"`
	Networks      any    `yaml:"networks"`
	NetworkMode   string `yaml:"network_mode"`
	Deploy        struct {
		Labels any `yaml:"labels"`
	} `yaml:"deploy"`
}

type composeNetwork struct {
	Name string `yaml:"name"`
}

// Compose returns what the services of a Compose file would result in, as if each ran
// in one container. Addresses are made up: a server's Container identifies it. Ports
// that the images expose are not in a file and are unknown. Path is the file's; its
// directory names the project.
func Compose(path string, data []byte, provider string, settings *config.Docker) (*discovery.Snapshot, error) {
	if len(data) > maxCompose {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, maxCompose)
	}
	var f composeFile
	if err := yaml.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s: %s", path, oneLine(err.Error()))
	}
	switch {
	case len(f.Services) == 0:
		return nil, fmt.Errorf("%s: it has no services", path)
	case len(f.Services) > maxServices:
		return nil, fmt.Errorf("%s: it has more than %d services", path, maxServices)
	}
	r := composeReader{composeFile: f, project: projectName(f.Name, path), networks: map[string]int{}}
	l := &listing{}
	h := here{reaches: true}
	for _, name := range sortedKeys(f.Services) {
		c := r.container(name, f.Services[name])
		if isHeadgate(f.Services[name].Image) && len(h.ids) == 0 {
			h.contained, h.ids = true, []string{c.ID}
		}
		l.containers = append(l.containers, c)
	}
	out := newWorld(provider, settings, h).update(l, netip.Addr{}, time.Now())
	return &discovery.Snapshot{State: discovery.Running, Known: true, Objects: out.objects, Issues: append(out.issues, r.issues...)}, nil
}

// Inspect requests the containers of an engine once, and returns what their labels define.
func Inspect(ctx context.Context, provider string, settings *config.Docker, env discovery.Environment) (*discovery.Snapshot, error) {
	s, err := open(provider, settings, env, detectHost())
	if err != nil {
		return nil, err
	}
	defer s.cancel()
	explained := func(err error) error {
		reason, hint := s.engine.explain(err)
		if hint != "" {
			reason += "; " + hint
		}
		return fmt.Errorf("query %s: %s", settings.Endpoint, reason)
	}
	s.ctx = ctx
	if _, err := s.engine.ping(ctx); err != nil {
		return nil, explained(err)
	}
	if _, err := s.list(nil); err != nil {
		return nil, explained(err)
	}
	return s.Snapshot(), nil
}

// isHeadgate reports whether an image is headgate's own, by its name.
func isHeadgate(image string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, "@")
	return name == "headgate"
}

// notInProject are the characters that Compose leaves out of a project's name.
var notInProject = regexp.MustCompile(`[^a-z0-9_-]`)

// projectName returns the name of the project as Compose finds it.
func projectName(name, path string) string {
	if name == "" {
		if full, err := filepath.Abs(path); err == nil {
			name = filepath.Base(filepath.Dir(full))
		}
	}
	name = strings.TrimLeft(notInProject.ReplaceAllString(strings.ToLower(name), ""), "_-")
	if name == "" {
		return "project"
	}
	return name
}

// composeReader makes containers of services.
type composeReader struct {
	composeFile
	project  string
	networks map[string]int // by name, the second number of its addresses
	count    int            // of containers
	issues   []discovery.Issue
}

// container returns a service as the container that it would be.
func (r *composeReader) container(name string, s composeEntry) *container {
	c := &container{ID: "service/" + name, Names: []string{"/" + r.project + "-" + name + "-1"}, State: "running", Labels: pairs(s.Labels)}
	if s.ContainerName != "" {
		c.Names = []string{"/" + s.ContainerName}
	}
	c.Labels[composeProject], c.Labels[composeService] = r.project, name
	c.setName()
	c.keepOurs()
	for key := range pairs(s.Deploy.Labels) {
		if ours(key) {
			r.issues = append(r.issues, discovery.Issue{Container: c.name, Label: oneLine(key), Code: discovery.MisplacedLabels,
				Message: "labels under deploy do not reach the containers, which is where headgate reads them", Hint: "move it to labels of the service"})
		}
	}
	for _, p := range s.Expose {
		private, protocol, _ := strings.Cut(fmt.Sprint(p), "/")
		r.publish(c, private, "", "", protocol)
	}
	for _, p := range s.Ports {
		r.port(c, p)
	}
	r.attach(c, s)
	return c
}

// pairs returns labels, which are a map or a list of KEY=VALUE.
func pairs(v any) map[string]string {
	out := map[string]string{}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if out[key] = fmt.Sprint(value); value == nil {
				out[key] = ""
			}
		}
	case []any:
		for _, entry := range v {
			key, value, _ := strings.Cut(fmt.Sprint(entry), "=")
			out[key] = value
		}
	}
	return out
}

// port reads an entry of ports: [[IP:]HOST:]CONTAINER[/PROTOCOL], or a map.
func (r *composeReader) port(c *container, v any) {
	if m, ok := v.(map[string]any); ok {
		text := func(key string) string {
			if m[key] == nil {
				return ""
			}
			return fmt.Sprint(m[key])
		}
		r.publish(c, text("target"), text("published"), text("host_ip"), text("protocol"))
		return
	}
	text, protocol, _ := strings.Cut(fmt.Sprint(v), "/")
	i := strings.LastIndex(text, ":")
	private, rest := text[i+1:], text[:max(i, 0)]
	j := strings.LastIndex(rest, ":")
	r.publish(c, private, rest[j+1:], strings.Trim(rest[:max(j, 0)], "[]"), protocol)
}

// publish adds a port, or a range of them.
func (r *composeReader) publish(c *container, private, public, ip, protocol string) {
	if protocol == "" {
		protocol = "tcp"
	}
	if ip == "" {
		ip = "0.0.0.0"
	}
	first, last, ok := portRange(private)
	if !ok {
		r.issues = append(r.issues, discovery.Issue{Container: c.name, Code: discovery.BadValue, Message: fmt.Sprintf("the port %s cannot be read", quoted(private)), Hint: "variables of Compose are not filled in here; write a number to have it checked"})
		return
	}
	from, _, published := portRange(public)
	for n := first; n <= last; n++ {
		p := portMapping{PrivatePort: uint16(n), Type: protocol}
		if published {
			p.PublicPort, p.IP = uint16(from+n-first), ip
		}
		c.Ports = append(c.Ports, p)
	}
}

// portRange reads a port, or two with a hyphen between.
func portRange(text string) (first, last int, ok bool) {
	a, b, two := strings.Cut(text, "-")
	first, err := strconv.Atoi(a)
	last = first
	if two && err == nil {
		last, err = strconv.Atoi(b)
	}
	return first, last, err == nil && first > 0 && last >= first && last < 1<<16 && last-first < maxRange
}

// attach puts a container into its networks.
func (r *composeReader) attach(c *container, s composeEntry) {
	c.NetworkSettings.Networks = map[string]*attachment{}
	switch mode, other, _ := strings.Cut(s.NetworkMode, ":"); {
	case mode == "host":
		c.HostConfig.NetworkMode = "host"
		return
	case mode == "none":
		return
	case mode == "service":
		c.HostConfig.NetworkMode = "container:service/" + other
		return
	case s.NetworkMode != "" && mode != "bridge":
		c.HostConfig.NetworkMode = s.NetworkMode
		return
	}
	names := []string{"default"}
	switch v := s.Networks.(type) {
	case []any:
		names = names[:0]
		for _, n := range v {
			names = append(names, fmt.Sprint(n))
		}
	case map[string]any:
		names = sortedKeys(v)
	}
	for _, n := range names {
		full := r.project + "_" + n
		if named := r.Networks[n].Name; named != "" {
			full = named
		}
		if r.networks[full] == 0 {
			r.networks[full] = len(r.networks) + 1
		}
		net := r.networks[full] % 256
		c.NetworkSettings.Networks[full] = &attachment{
			IPAddress: fmt.Sprintf("10.%d.%d.%d", net, r.count/250, r.count%250+2), Gateway: fmt.Sprintf("10.%d.0.1", net),
		}
	}
	r.count++
}
